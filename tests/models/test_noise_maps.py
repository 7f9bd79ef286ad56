"""What networks are told about the noise: sigma and correlation, known or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_networks import DENOISERS, EVERY_TOLD_NETWORK, describe, tiny
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

import normeq
from normeq.errors import UsageError
from normeq.models import Network, Wrapped, create
from normeq.models.noise_maps import SIGMA_FLOOR, floored

EQUIVARIANT = [o for o in EVERY_TOLD_NETWORK if o["variant"].startswith("norm-equiv")]
SCALE_EQUIVARIANT = [o for o in EVERY_TOLD_NETWORK if o["variant"] == "scale-equiv"]

every_told_network = pytest.mark.parametrize("options", EVERY_TOLD_NETWORK, ids=describe)


def told(name: str = "unet", variant: str = "norm-equiv-residual") -> Network | Wrapped:
    return tiny(name, variant, takes_sigma="optional", takes_correlation=True).double()


def images_and_maps(samples: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    draw = torch.rand(4, samples, 1, 9, 14, generator=rng, dtype=torch.float64)
    sigma = draw[1] + 0.01
    correlation = torch.cat((sigma * (1 + draw[2]), sigma * (1 + 2 * draw[3])), 1)
    return draw[0], sigma, correlation


@pytest.mark.parametrize("options", EQUIVARIANT + SCALE_EQUIVARIANT, ids=describe)
@given(
    gain=st.floats(1e-3, 1e3),
    offset=st.floats(-1e3, 1e3),
    seed=st.integers(0, 9),
    zeros=st.booleans(),
)
def test_gain_and_offset_pass_through(
    options: dict[str, Any], gain: float, offset: float, seed: int, zeros: bool
) -> None:
    net = tiny(**options).double()
    x, sigma, correlation = images_and_maps(seed=seed)
    offset = offset if options["variant"] != "scale-equiv" else 0.0
    if zeros:
        sigma[0, :, 2:4] = 0
        sigma[1] = 0
    expected = gain * net(x, sigma, correlation) + offset
    output = net(gain * x + offset, gain * sigma, gain * correlation)
    torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9 * (gain + abs(offset)))


@every_told_network
def test_every_map_matters(options: dict[str, Any]) -> None:
    net = tiny(**options).double()
    x, sigma, correlation = images_and_maps()
    reference = net(x, sigma, correlation)
    for changed in (2 * sigma, sigma.flip(-1)):
        assert not torch.allclose(net(x, changed, correlation), reference)
    for axis in (0, 1):
        longer = correlation.clone()
        longer[:, axis] *= 2
        assert not torch.allclose(net(x, sigma, longer), reference)


@every_told_network
def test_not_known_belongs_to_a_whole_sample(options: dict[str, Any]) -> None:
    net = tiny(**options).double()
    x, sigma, correlation = images_and_maps()
    unknown = net(x)
    torch.testing.assert_close(net(x, 0.0), unknown)
    torch.testing.assert_close(net(x, 0 * sigma, correlation), unknown)
    sigma[1] = 0  # the second sample alone
    output = net(x, sigma, correlation)
    torch.testing.assert_close(output[1], unknown[1])
    assert not torch.allclose(output[0], unknown[0])


@every_told_network
def test_noise_is_white_unless_its_correlation_is_given(options: dict[str, Any]) -> None:
    net = tiny(**options).double()
    x, sigma, _ = images_and_maps()
    torch.testing.assert_close(net(x, sigma), net(x, sigma, sigma.expand(-1, 2, -1, -1)))


@every_told_network
def test_pixels_without_noise_come_back(options: dict[str, Any]) -> None:
    net = tiny(**options).double()
    x, sigma, correlation = images_and_maps()
    sigma[0, 0, 3, 4:8] = 0
    output = net(x, sigma, correlation)
    torch.testing.assert_close(output[0, 0, 3, 4:8], x[0, 0, 3, 4:8], rtol=1e-12, atol=1e-12)
    assert (output != x).sum() > x.numel() - 10


def test_tiny_values_inside_a_map_are_raised_to_its_floor() -> None:
    net = told()
    x, sigma, _ = images_and_maps()
    sigma[0, 0, 3, 4] = 1e-9
    raised = sigma.clone()
    raised[0, 0, 3, 4] = SIGMA_FLOOR * sigma[0].mean()
    torch.testing.assert_close(net(x, sigma), net(x, raised))
    torch.testing.assert_close(floored(sigma)[0].min(), SIGMA_FLOOR * sigma[0].mean())
    assert torch.equal(floored(0 * sigma), 0 * sigma)


def test_tiles_of_image_and_maps_give_tiles_of_the_output() -> None:
    net = told()
    x, sigma, correlation = (t.repeat(1, 1, 8, 5) for t in images_and_maps(1))
    sigma[..., :40, :] /= 1000  # below the floor, which the mean of the whole map decides
    whole = net(x, sigma, correlation)
    maps = net.noise_maps(x, sigma, correlation)
    cut, halo = (..., slice(0, 56), slice(8, 64)), 24
    assert net.receptive_field <= halo
    tile = net.with_maps(x[cut], maps[cut])
    torch.testing.assert_close(tile[..., :32, halo:-halo], whole[cut][..., :32, halo:-halo])


@pytest.mark.parametrize("name", DENOISERS)
@pytest.mark.parametrize("quicker", [normeq.fold, normeq.nn.fuse])
def test_folded_and_fused_networks_are_told_the_same(name: str, quicker: Any) -> None:
    net = told(name)
    x, sigma, correlation = images_and_maps()
    fast = quicker(net)
    torch.testing.assert_close(fast(x, sigma, correlation), net(x, sigma, correlation))
    torch.testing.assert_close(fast(x), net(x))
    assert fast.takes_sigma == "optional"


def test_blind_is_short_for_never_and_always() -> None:
    assert tiny("unet", blind=True).takes_sigma == "never"
    assert tiny("unet", blind=False).takes_sigma == "always"
    assert [tiny("unet", takes_sigma=t).blind for t in ("never", "optional", "always")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(("blind", "takes_sigma"), [(True, "never"), (False, "always")])
def test_weights_saved_before_sigma_could_be_optional_load_as_they_were(
    blind: bool, takes_sigma: str, tmp_path: Path
) -> None:
    net = tiny("unet", blind=blind)
    path = tmp_path / "old.safetensors"
    normeq.save(net, path, {})
    with safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["normeq"])
    del about["config"]["takes_sigma"], about["config"]["takes_correlation"]
    about["config"]["blind"] = blind
    tensors = {name: tensor.contiguous() for name, tensor in net.state_dict().items()}
    save_file(tensors, path, {"normeq": json.dumps(about)})
    loaded = normeq.load(path)
    assert (loaded.takes_sigma, loaded.takes_correlation) == (takes_sigma, False)
    x, told = torch.rand(1, 1, 9, 9), () if blind else (0.1,)
    assert torch.equal(loaded(x, *told), net(x, *told))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tiny("unet", takes_sigma="maybe"), "'maybe': use one of never, optional, always"),
        (lambda: tiny("unet", takes_correlation=True), "takes_correlation needs sigma"),
        (lambda: create("unet", blind=True, takes_sigma="never"), "mean the same"),
        (
            lambda: tiny("unet", blind=False)(torch.rand(1, 1, 8, 8), 0.1, torch.rand(1, 2, 8, 8)),
            "takes no correlation",
        ),
        (lambda: told()(torch.rand(1, 1, 8, 8), None, torch.rand(1, 2, 8, 8)), "without sigma"),
        (
            lambda: told()(torch.rand(1, 1, 8, 8), 0.1, torch.rand(1, 1, 8, 8)),
            r"must have shape \(1, 2, 8, 8\)",
        ),
        (
            lambda: tiny("unet", blind=False, channels=3)(
                torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
            ),
            "one sigma for all channels",
        ),
    ],
)
def test_mistakes_get_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        call()
