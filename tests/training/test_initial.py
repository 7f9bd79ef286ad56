from __future__ import annotations

import pytest
import torch

import normeq
from normeq.errors import WeightsError
from normeq.training.initial import initial_network
from normeq.training.recipe import NetworkSettings

VARIANTS = ("scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped")
SIZE = {"widths": (4, 6), "blocks": 1}
DEEPER = {"widths": (4, 6), "blocks": 2}


def described(variant: str, **fields) -> NetworkSettings:
    return NetworkSettings(architecture="unet", variant=variant, size=SIZE, **fields)


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


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("before", ["never", "always", "optional"])
def test_a_network_with_all_maps_begins_as_one_with_fewer(tmp_path, variant, before):
    path = tmp_path / "fewer.safetensors"
    fewer = initial_network(described(variant, takes_sigma=before))
    normeq.save(fewer, path, {})
    maps = {"takes_sigma": "optional", "takes_correlation": True}
    told = initial_network(described(variant, **maps, init=str(path)))
    image, sigma = torch.rand(2, 1, 16, 16), torch.rand(2, 1, 16, 16)
    correlation = sigma * torch.rand(2, 2, 16, 16).add(1)
    expected = fewer(image) if before == "never" else fewer(image, sigma)
    torch.testing.assert_close(told(image, sigma, correlation), expected)
    told(image, sigma, correlation).square().sum().backward()
    [first] = [p for name, p in told.named_parameters() if "head" in name and p.ndim == 4]
    assert all(first.grad[:, -index].abs().max() > 0 for index in (1, 2, 3))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("widths", [(4, 6), (8, 8)])
def test_a_deeper_network_begins_as_the_shallower_one_it_starts_from(tmp_path, variant, widths):
    path = tmp_path / "shallow.safetensors"
    shallow = initial_network(described(variant))
    normeq.save(shallow, path, {})
    size = {"widths": widths, "blocks": 3}
    deep = initial_network(
        NetworkSettings(architecture="unet", variant=variant, size=size, init=str(path))
    )
    image = torch.rand(2, 1, 16, 16)
    output = deep(image)
    torch.testing.assert_close(output, shallow(image), atol=1e-5, rtol=1e-5)
    output.square().sum().backward()
    learning = [p for name, p in deep.named_parameters() if "body.2." in name and p.grad.any()]
    assert learning


def test_a_network_begins_as_one_with_fewer_blocks_in_some_stages(tmp_path):
    path = tmp_path / "shallow.safetensors"
    common = {"architecture": "unet", "variant": "norm-equiv-residual"}
    size = {"widths": (4, 6), "blocks": (1, 0, 1)}
    shallow = initial_network(NetworkSettings(**common, size=size))
    normeq.save(shallow, path, {})
    size = {"widths": (4, 6), "blocks": (2, 0, 3)}
    deep = initial_network(NetworkSettings(**common, size=size, init=str(path)))
    image = torch.rand(2, 1, 16, 16)
    torch.testing.assert_close(deep(image), shallow(image))


@pytest.mark.parametrize("maps", [{}, {"takes_sigma": "optional", "takes_correlation": True}])
def test_a_colour_network_begins_by_correcting_colours_as_the_gray_one_corrects_their_mean(
    tmp_path, maps
):
    path = tmp_path / "gray.safetensors"
    gray = initial_network(described("norm-equiv-residual", **maps))
    normeq.save(gray, path, {"hours": 1})
    colour = initial_network(
        described("norm-equiv-residual", **maps, channels=3, separate_channels=True, init=str(path))
    )
    assert colour.card["started_from"]["hours"] == 1
    image = torch.rand(2, 3, 16, 16)
    mean = image.mean(1, keepdim=True)
    sigma = torch.rand(2, 1, 16, 16).add(0.1)
    lengths = torch.rand(2, 2, 1, 1)
    told = [(), ()]
    if maps:
        level = sigma / 3**0.5  # of the mean of three channels
        told = [(sigma, sigma * (1 + lengths)), (level, level * (1 + lengths))]
    expected = image + gray(mean, *told[1]) - mean
    torch.testing.assert_close(colour(image, *told[0]), expected)
    colour(image, *told[0]).square().sum().backward()
    assert all(parameter.grad.any() for parameter in colour.parameters())


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
    wide = initial_network(
        NetworkSettings(architecture="unet", variant=variant, init=str(path), **fields)
    )
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
        ({"size": {"widths": (4, 6), "blocks": 1}}, "as deep or shallower"),
        ({"size": {"widths": (4, 6, 8), "blocks": 2}}, "contains a network other .* scales=2"),
        ({"size": {**DEEPER, "sort": True}}, "contains a network other .* sort=False"),
        ({"size": {"widths": (4, 4), "blocks": 2}}, "does not fit"),
        ({"size": {"widths": (2, 8), "blocks": 2}}, "does not fit"),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path, fields, sentence):
    path = tmp_path / "net.safetensors"
    common = {"architecture": "unet", "variant": "norm-equiv-residual"}
    normeq.save(initial_network(NetworkSettings(**common, size=DEEPER)), path, {})
    wanted = NetworkSettings(**common, **fields, init=str(path))
    with pytest.raises(WeightsError, match=sentence):
        initial_network(wanted)
