"""Random networks from a grammar: proven implies measured, and every counterexample is one."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.soundness import assert_sound
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.certification import Status, certify
from normeq.nn import AffineConv2d, AffineResidual, Enclosed, SortPool, ZeroSumConv2d

CHANNELS = 4

#: Layers from four channels to four, lawful and not.
LAYERS = {
    "affine": lambda: AffineConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "differences": lambda: ZeroSumConv2d(CHANNELS, CHANNELS, 3, padding=1),
    "plain": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False),
    "biased": lambda: nn.Conv2d(CHANNELS, CHANNELS, 1),
    "sort": SortPool,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "sigmoid": nn.Sigmoid,
    "group norm": lambda: nn.GroupNorm(2, CHANNELS),
    "batch norm": lambda: nn.BatchNorm2d(CHANNELS),
    "enclosed batch norm": lambda: Enclosed(nn.BatchNorm2d(CHANNELS), offset=True),
    "instance norm without epsilon": lambda: nn.InstanceNorm2d(CHANNELS, eps=0.0),
    "median of neighbours": lambda: nn.MaxPool2d(3, 1, 1),
    "average": lambda: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
    "enclosed gate": lambda: Enclosed(nn.SiLU(), offset=True),
    "shuffle": lambda: nn.ChannelShuffle(2),
}


class Gate(nn.Module):
    """A mixture of two branches by a gate of ratios; its weights add up to one if `fair`."""

    def __init__(self, first: nn.Module, second: nn.Module, fair: bool) -> None:
        super().__init__()
        self.first, self.second, self.fair = first, second, fair

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean((1, 2, 3), keepdim=True)
        gate = torch.sigmoid(centred / x.std((1, 2, 3), keepdim=True))
        other = 1 - gate if self.fair else gate
        return gate * self.first(x) + other * self.second(x)


class Join(nn.Module):
    """Two branches added, or joined affinely."""

    def __init__(self, first: nn.Module, second: nn.Module, affine: bool) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.join = AffineResidual() if affine else None

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.first(x), self.second(x)
        return a + b if self.join is None else self.join(a, b)


class Weighted(nn.Module):
    """A mean over neighbours, weighted by how far a branch's features differ."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        features = self.branch(x)
        total, weights = torch.zeros_like(x), torch.zeros_like(x)
        for shift in (-1, 0, 1):
            distance = (features - features.roll(shift, 3)).square()
            usual = (features - features.mean((1, 2, 3), keepdim=True)).square().mean((1, 2, 3))
            weight = torch.exp(-distance / usual[:, None, None, None])
            total, weights = total + weight * x.roll(shift, 3), weights + weight
        return total / weights


class Padded(nn.Module):
    """Padding to even sizes with the mean of the image, and back."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        right = x.shape[-1] % 2
        padded = F.pad(x, (0, right), mode="constant", value=float(x.mean()))
        return self.branch(padded)[..., : x.shape[-1]]


def networks() -> st.SearchStrategy[nn.Module]:
    layers = st.sampled_from(sorted(LAYERS)).map(lambda name: LAYERS[name]())

    def grow(inner: st.SearchStrategy[nn.Module]) -> st.SearchStrategy[nn.Module]:
        return st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: nn.Sequential(*parts)),
            st.builds(Join, inner, inner, st.booleans()),
            st.builds(Gate, inner, inner, st.booleans()),
            st.builds(Weighted, inner),
            st.builds(Padded, inner),
        )

    return st.recursive(layers, grow, max_leaves=4)


class Whole(nn.Module):
    """A random body between an affine first and last layer."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.first, self.body = AffineConv2d(1, CHANNELS, 3, padding=1), body
        self.last = AffineConv2d(CHANNELS, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(self.first(x)))


@settings(max_examples=6)
@given(networks(), st.booleans())
def test_random_networks(body: nn.Module, odd: bool) -> None:
    check(body, odd)


@pytest.mark.slow
@settings(max_examples=100)
@given(networks(), st.booleans())
def test_many_random_networks(body: nn.Module, odd: bool) -> None:
    check(body, odd)


def check(body: nn.Module, odd: bool) -> None:
    torch.manual_seed(0)
    net = Whole(body).train(odd)
    image = torch.rand(1, 1, 6, 9 if odd else 8)
    certificate = certify(net, image)
    assert_sound(net, certificate, image.double())
    double = copy.deepcopy(net).double()
    for which, found in certificate.counterexamples.items():
        assert getattr(certificate, which) is Status.BROKEN
        with torch.no_grad():
            changed = double(found.gain * found.image.double() + found.offset)
            expected = found.gain * double(found.image.double()) + found.offset
        assert not torch.allclose(changed, expected, rtol=1e-9, atol=1e-9 * found.gain)
    for which in ("scale", "shift"):
        broken = getattr(certificate, which) is Status.BROKEN
        assert broken == (which in certificate.counterexamples)
