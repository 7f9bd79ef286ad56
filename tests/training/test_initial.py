from __future__ import annotations

import pytest
import torch

import normeq
from normeq.errors import WeightsError
from normeq.training.initial import initial_network
from normeq.training.recipe import Network

VARIANTS = ("scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped")
SIZE = {"widths": (4, 6), "blocks": 1}


def described(variant: str, **fields) -> Network:
    return Network(architecture="unet", variant=variant, size=SIZE, **fields)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_non_blind_network_begins_as_the_blind_one_it_starts_from(tmp_path, variant):
    path = tmp_path / "blind.safetensors"
    blind = initial_network(described(variant))
    normeq.save(blind, path, {})
    told = initial_network(described(variant, blind=False, init=str(path)))
    image = torch.rand(2, 1, 16, 16)
    torch.testing.assert_close(told(image, 0.3), blind(image))
    told(image, 0.3).square().sum().backward()
    [first] = [p for name, p in told.named_parameters() if "head" in name and p.ndim == 4]
    assert first.grad is not None
    assert first.grad[:, -1].abs().max() > 0


def test_the_same_network_starts_where_the_other_ended(tmp_path):
    path = tmp_path / "net.safetensors"
    net = initial_network(described("norm-equiv"))
    normeq.save(net, path, {})
    again = initial_network(described("norm-equiv", init=str(path)))
    for one, other in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("blind", [True, False])
def test_a_wider_network_begins_as_the_narrower_one_it_starts_from(tmp_path, variant, blind):
    path = tmp_path / "narrow.safetensors"
    narrow = initial_network(described(variant))
    normeq.save(narrow, path, {})
    fields = {"size": {"widths": (6, 10), "blocks": 1}, "blind": blind}
    wide = initial_network(described(variant, init=str(path)).model_copy(update=fields))
    image = torch.rand(2, 1, 16, 16)
    output = wide(image) if blind else wide(image, 0.3)
    torch.testing.assert_close(output, narrow(image), atol=1e-5, rtol=1e-5)
    output.square().sum().backward()
    last = next(p for name, p in wide.named_parameters() if "tail" in name and p.ndim == 4)
    assert last.grad is not None
    assert last.grad[:, 4:].abs().max() > 0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"size": {"widths": (4, 6), "blocks": 2}}, "holds another network .* blocks=1"),
        ({"size": {**SIZE, "sort": True}}, "holds another network .* sort=False"),
        ({"size": {"widths": (4, 4), "blocks": 1}}, "does not fit"),
        ({"size": {"widths": (2, 8), "blocks": 1}}, "does not fit"),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path, fields, sentence):
    path = tmp_path / "net.safetensors"
    normeq.save(initial_network(described("norm-equiv-residual")), path, {})
    wanted = described("norm-equiv-residual", init=str(path)).model_copy(update=fields)
    with pytest.raises(WeightsError, match=sentence):
        initial_network(wanted)
