from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from helpers.foreign_networks import ResNet, UNet
from helpers.small_networks import EVERY_NETWORK, describe, tiny
from torch import Tensor, nn

from normeq import assert_equivariant, convert, fold
from normeq.nn import AffineConv2d, AffineResidual, SortPool, constrain, fuse
from normeq.nn.fast import borders
from normeq.nn.padding import copy_borders_

every_network = pytest.mark.parametrize("options", EVERY_NETWORK, ids=describe)


def example(options: dict[str, Any]) -> tuple[nn.Module, tuple[Any, ...]]:
    """Return a network and what it is called with, at a size that needs padding where it can."""
    size = (20, 20) if options["name"] == "vgg8b" else (13, 19)
    sigma = (torch.tensor([0.1, 0.3]),) if options.get("blind") is False else ()
    return tiny(**options), (torch.rand(2, 1, *size), *sigma)


@every_network
def test_folded_networks_are_the_same_function(options: dict[str, Any]) -> None:
    net, inputs = example(options)
    folded = fold(net)
    with torch.no_grad():
        torch.testing.assert_close(folded(*inputs), net(*inputs), atol=1e-5, rtol=1e-5)
    assert not any(parameter.requires_grad for parameter in folded.parameters())
    assert not any("parametrizations" in name for name, _ in folded.named_modules())


@every_network
def test_folded_networks_look_the_same(options: dict[str, Any]) -> None:
    net, _ = example(options)
    folded = fold(net.train())
    assert isinstance(folded, type(net))
    assert not folded.training
    assert net.training
    names = "architecture", "variant", "equivariance", "config", "card", "takes_sigma", "channels"
    for name in (*names, "stride", "receptive_field"):
        if hasattr(net, name):
            assert getattr(folded, name) == getattr(net, name)


@every_network
def test_fused_networks_have_the_same_gradients(options: dict[str, Any]) -> None:
    net, inputs = example(options)
    inputs = tuple(tensor.double() for tensor in inputs)
    net = net.double()
    expected = torch.autograd.grad(net(*inputs).square().sum(), list(net.parameters()))
    fuse(net)(*inputs).square().sum().backward()
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("make", [fold, fuse])
def test_chains_of_blocks_pass_padded_features_on(make: Any) -> None:
    net = tiny("unet", blocks=3).double()
    x = torch.rand(2, 1, 13, 19, dtype=torch.float64)
    fast = make(net)
    torch.testing.assert_close(fast(x), net(x))
    assert not any(isinstance(module, SortPool) for module in fast.modules())
    padding = [module for module in fast.body.modules() if isinstance(module, AffineConv2d)]
    # In a fused network every convolution keeps the layer that owns its kernel.
    assert len(padding) == (1 if make is fold else 6)


def test_the_gradients_of_chains_of_blocks() -> None:
    net = tiny("unet", blocks=3).double()
    x = torch.rand(2, 1, 13, 19, dtype=torch.float64)
    expected = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    fuse(net)(x).square().sum().backward()
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_the_original_is_left_as_it_is() -> None:
    net = tiny("unet")
    x, state = torch.rand(1, 1, 8, 8), copy.deepcopy(net.state_dict())
    before, random = net(x), torch.get_rng_state()
    fold(net), fuse(net)
    assert torch.equal(net(x), before)
    assert torch.equal(torch.get_rng_state(), random)
    assert net.state_dict().keys() == state.keys()
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_fused_networks_follow_the_parameters_of_the_original() -> None:
    net, x = tiny("unet"), torch.rand(1, 1, 8, 8)
    fused = fuse(net)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.1)
    torch.testing.assert_close(fused(x), net(x), atol=1e-5, rtol=1e-5)
    assert {id(p) for p in fused.parameters()} == {id(p) for p in net.parameters()}


def test_folded_networks_stay_equivariant() -> None:
    folded = fold(tiny("unet").double())
    image = torch.rand(1, 1, 16, 16, dtype=torch.float64)
    assert_equivariant(folded, image, "norm")


def test_folded_networks_can_be_copied_and_moved() -> None:
    folded, x = fold(tiny("unet")), torch.rand(1, 1, 8, 8)
    double = copy.deepcopy(folded).double()
    torch.testing.assert_close(double(x.double()).float(), folded(x), atol=1e-5, rtol=1e-5)
    again = fold(folded)
    torch.testing.assert_close(again(x), folded(x), atol=1e-5, rtol=1e-5)


def test_folded_networks_can_be_exported() -> None:
    folded, x = fold(tiny("unet")), torch.rand(1, 1, 8, 8)
    exported = torch.export.export(folded, (x,)).module()
    torch.testing.assert_close(exported(x), folded(x), atol=1e-5, rtol=1e-5)


def test_the_gradient_of_a_folded_network_with_respect_to_its_input() -> None:
    net = tiny("unet").double()
    x = torch.rand(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(net(x).square().sum(), x)
    (gradient,) = torch.autograd.grad(fold(net)(x).square().sum(), x)
    torch.testing.assert_close(gradient, expected)


class Odd(nn.Module):
    """What users write: layers used twice, branches, an optional argument, a constrained layer."""

    stride = 3

    def __init__(self) -> None:
        super().__init__()
        self.first = AffineConv2d(1, 6, 3, padding=1)
        self.shared = constrain(nn.Conv2d(6, 6, 3, padding=1, padding_mode="circular", bias=False))
        self.sort = SortPool()
        self.residual = AffineResidual()
        self.sort_in_threes = SortPool(3)
        self.last = nn.Conv2d(6, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.sort(self.first(x))
        x = self.shared(self.sort(self.shared(x)))
        x = self.residual(x, self.shared(x))
        x = self.residual(x, x)
        y = self.sort(x)
        x = self.residual(self.shared(y), self.last.weight.mean() * y)
        x = self.shared(self.sort_in_threes(self.shared(x)))
        return self.last(torch.relu(x)) + x.mean()


class OddByArgument(Odd):
    """Its graph depends on the call: only its parts can be traced."""

    def forward(self, x: Tensor, double: bool = False) -> Tensor:
        return super().forward(2 * x if double else x)


@pytest.mark.parametrize("kind", [Odd, OddByArgument])
@pytest.mark.parametrize("make", [fold, fuse])
def test_any_network_can_be_made_faster(kind: type[Odd], make: Any) -> None:
    net = kind().double()
    x = torch.rand(2, 1, 7, 9, dtype=torch.float64)
    fast = make(net)
    torch.testing.assert_close(fast(x), net(x))
    assert fast.stride == 3
    if kind is OddByArgument:
        torch.testing.assert_close(fast(x, double=True), net(x, double=True))


def test_the_gradients_of_any_network() -> None:
    net = Odd().double()
    x = torch.rand(2, 1, 7, 9, dtype=torch.float64)
    expected = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    fuse(net)(x).square().sum().backward()
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("width", [1, 5, 6])
@pytest.mark.parametrize("padding_mode", ["zeros", "reflect"])
def test_pairs_between_any_two_convolutions(width: int, padding_mode: str) -> None:
    net = nn.Sequential(
        nn.Conv2d(1, width, 3, bias=False),
        SortPool(),
        nn.Conv2d(width, 2, 3, 2, 1, 2, bias=False, padding_mode=padding_mode),
    ).double()
    x = torch.rand(2, 1, 9, 11, dtype=torch.float64)
    for fast in (fold(net), fuse(net)):
        torch.testing.assert_close(fast(x), net(x))


@pytest.mark.parametrize(
    ("kind", "to"),
    [(UNet, "norm-equiv"), (ResNet, "norm-equiv"), (ResNet, "norm-equiv-residual")],
)
def test_converted_networks(kind: Any, to: Any) -> None:
    x = torch.rand(1, 1, 16, 16)
    twin, _ = convert(kind().eval(), to, x)
    twin, x = twin.double().eval(), x.double()
    for fast in (fold(twin), fuse(twin)):
        torch.testing.assert_close(fast(x), twin(x))


class _GlobalBranch(nn.Module):
    """A residual whose second branch is broadcast: one value for all pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.first = AffineConv2d(2, 4, 3, padding=1)
        self.gate = AffineConv2d(4, 4, 1)
        self.residual = AffineResidual()
        self.last = AffineConv2d(4, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(self.residual(x, self.gate(x.mean((2, 3), keepdim=True))))


def test_a_broadcast_residual_keeps_its_shape() -> None:
    net, x = _GlobalBranch(), torch.rand(2, 2, 7, 6)
    torch.testing.assert_close(fold(net)(x), net(x), atol=1e-5, rtol=1e-5)
    expected = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    got = torch.autograd.grad(fuse(net)(x).square().sum(), list(net.parameters()))
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_volumes_can_be_folded() -> None:
    net = nn.Sequential(nn.Conv3d(1, 2, 3, bias=False), nn.ReLU())
    x = torch.rand(1, 1, 5, 5, 5)
    torch.testing.assert_close(fold(net)(x), net(x))


@pytest.mark.parametrize(("name", "options"), [("fdncnn", {}), ("unet", {"blocks": 2})])
def test_large_features_keep_their_border(
    name: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same function whichever way features are padded, and both ways are taken."""
    net = tiny(name, variant="norm-equiv", **options).double()
    folded = fold(net)
    taken: set[bool] = set()
    padded = borders.sort_pad

    def watched(*args: Any) -> Tensor:
        taken.add(False)
        return padded(*args)

    def kept(x: Tensor, pads: Any, mode: Any) -> None:
        taken.add(True)
        copy_borders_(x, pads, mode)

    monkeypatch.setattr(borders, "sort_pad", watched)
    monkeypatch.setattr(borders, "copy_borders_", kept)
    for size, way in (((8, 8), False), ((97, 113), True)):
        taken.clear()
        x = torch.rand(2, 1, *size, dtype=torch.float64)
        with torch.no_grad():
            torch.testing.assert_close(folded(x), net(x))
        assert way in taken


def test_a_border_that_is_written_over_leaves_the_input_alone() -> None:
    net = nn.Sequential(
        AffineConv2d(1, 4, 3),
        SortPool(),
        AffineConv2d(4, 4, 3, padding=1),
        SortPool(),
        AffineConv2d(4, 1, 3, padding=1),
    ).double()
    x = torch.rand(1, 1, 40, 50, dtype=torch.float64)
    before = x.clone()
    with torch.no_grad():
        torch.testing.assert_close(fold(net)(x), net(x))
    assert torch.equal(x, before)
