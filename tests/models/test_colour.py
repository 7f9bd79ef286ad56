"""Networks of several channels, with one offset for all or one for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.small_networks import DENOISERS, tiny
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import normeq
from normeq.errors import UsageError
from normeq.models import Network, Wrapped

OFFSETS = st.tuples(*[st.floats(-1e3, 1e3)] * 3)


def colour(name: str = "unet", **options: Any) -> Network | Wrapped:
    maps = {"takes_sigma": "optional", "takes_correlation": True, "separate_channels": True}
    return tiny(name, "norm-equiv-residual", channels=3, **maps | options).double()


def images_and_maps(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x, sigma, length = torch.rand(3, 2, 3, 9, 14, generator=rng, dtype=torch.float64)
    sigma = sigma + 0.01
    return x, sigma, sigma.mean(1, keepdim=True) * (1 + length[:, :2])


@pytest.mark.parametrize("name", DENOISERS)
@given(gain=st.floats(1e-3, 1e3), offsets=OFFSETS, seed=st.integers(0, 9))
def test_each_channel_may_have_an_offset_of_its_own(
    name: str, gain: float, offsets: tuple[float, ...], seed: int
) -> None:
    net = colour(name)
    x, sigma, correlation = images_and_maps(seed)
    offset = torch.tensor(offsets, dtype=torch.float64).reshape(1, 3, 1, 1)
    tolerance = 1e-9 * (gain + offset.abs().max())
    for maps in ((), (sigma, correlation)):
        expected = gain * net(x, *maps) + offset
        output = net(gain * x + offset, *(gain * each for each in maps))
        torch.testing.assert_close(output, expected, rtol=1e-9, atol=float(tolerance))


def test_otherwise_one_offset_is_shared() -> None:
    net = colour(separate_channels=False)
    x, _, _ = images_and_maps()
    normeq.assert_equivariant(net, x)
    offset = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).reshape(1, 3, 1, 1)
    assert not torch.allclose(net(x + offset), net(x) + offset)


@pytest.mark.parametrize("name", DENOISERS)
def test_first_kernels_sum_to_zero_over_each_colour(name: str) -> None:
    net = colour(name)
    first = next(m for m in net.modules() if isinstance(m, normeq.nn.ZeroSumConv2d))
    image = first.weight[:, : first.in_channels - net.maps]
    phases = image.shape[1] // 3
    for index in range(3):
        total = image[:, index * phases : (index + 1) * phases].sum((1, 2, 3))
        torch.testing.assert_close(total, torch.zeros_like(total), atol=1e-12, rtol=0)
    assert net.maps == 5


@pytest.mark.parametrize("name", DENOISERS)
def test_channels_are_denoised_together(name: str) -> None:
    net = colour(name)
    x, sigma, correlation = images_and_maps()
    reference = net(x, sigma, correlation)
    other = x.clone()
    other[:, 0] = other[:, 0].flip(-1)
    assert not torch.allclose(net(other, sigma, correlation)[:, 2], reference[:, 2])


def test_sigma_is_given_for_each_channel_or_for_all() -> None:
    net = colour()
    x, sigma, _ = images_and_maps()
    alike = sigma[:, :1]
    torch.testing.assert_close(net(x, alike), net(x, alike.expand(-1, 3, -1, -1)))
    for channel in range(3):
        louder = sigma.clone()
        louder[:, channel] *= 2
        assert not torch.allclose(net(x, louder), net(x, sigma))


def test_a_channel_without_noise_comes_back() -> None:
    net = colour()
    x, sigma, _ = images_and_maps()
    sigma[:, 1] = 0
    output = net(x, sigma)
    assert torch.equal(output[:, 1], x[:, 1])
    assert not torch.allclose(output[:, 0], x[:, 0])


@pytest.mark.parametrize("quicker", [normeq.fold, normeq.nn.fuse])
def test_folded_and_fused_networks_are_the_same(quicker: Any) -> None:
    net = colour()
    x, sigma, correlation = images_and_maps()
    torch.testing.assert_close(quicker(net)(x, sigma, correlation), net(x, sigma, correlation))


def test_they_are_proven_equivariant() -> None:
    assert normeq.certify(colour()).norm is normeq.Status.PROVEN


def test_weights_assigned_later_are_projected_colour_by_colour() -> None:
    conv = normeq.nn.ZeroSumConv2d(6, 2, 3, parts=3).double()
    wanted = torch.rand(2, 6, 3, 3, dtype=torch.float64)
    conv.weight = wanted
    parts = conv.weight.unflatten(1, (3, 2))
    assert parts.sum((2, 3, 4)).abs().max() < 1e-12
    expected = wanted.unflatten(1, (3, 2))
    expected = expected - expected.mean((2, 3, 4), keepdim=True)
    torch.testing.assert_close(parts, expected)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: tiny("unet", "norm-equiv", separate_channels=True), "'norm-equiv-residual'"),
        (lambda: normeq.nn.ZeroSumConv2d(5, 2, 3, parts=3), "must divide its 5"),
        (lambda: normeq.nn.ZeroSumConv2d(6, 2, 3, groups=2, parts=3), "without groups"),
    ],
)
def test_mistakes_get_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        call()
