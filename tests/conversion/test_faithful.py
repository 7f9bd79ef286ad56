"""What a conversion keeps, says and refuses, where it was once wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from helpers.small_networks import tiny
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

import normeq
from normeq.certification import Status
from normeq.conversion import convert
from normeq.errors import UsageError
from normeq.nn import AffineConv2d


class Calls(nn.Module):
    """A convolution, then a function of its input and output."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], channels: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.conv(x))


def image(*shape: int) -> Tensor:
    return torch.rand(shape or (1, 1, 8, 8), generator=torch.Generator().manual_seed(0))


def normed(layer: nn.Module) -> nn.Module:
    """Put a batch norm with a gain of its own after a layer of two channels."""
    norm = nn.BatchNorm2d(2)
    norm.running_var = torch.tensor([0.25, 4.0])
    return nn.Sequential(layer, norm, nn.Conv2d(2, 1, 1, bias=False)).eval()


COMPUTED = {
    "weight norm": lambda: weight_norm(nn.Conv2d(1, 2, 3, bias=False)),
    "spectral norm": lambda: spectral_norm(nn.Conv2d(1, 2, 3, bias=False)),
    "affine": lambda: AffineConv2d(1, 2, 3),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_the_gain_after_computed_weights_is_kept(name: str) -> None:
    net = normed(COMPUTED[name]())
    twin, report = convert(net, "scale-equiv", image())
    assert [change.now for change in report.changes] == ["ChannelGain"]
    with torch.no_grad():
        torch.testing.assert_close(twin(image()), net(image()))


@pytest.mark.parametrize("name", COMPUTED)
def test_the_gain_after_computed_weights_in_the_norm_equivariant_forms(name: str) -> None:
    net = normed(COMPUTED[name]())
    padded = nn.Sequential(nn.ReplicationPad2d(1), net).eval()
    twin, report = convert(padded, "norm-equiv-residual", image())
    assert report.certificate.norm is Status.PROVEN
    with torch.no_grad():
        torch.testing.assert_close(twin.inner(image()), padded(image()))
    if name == "affine":  # a gain would break the sums of its kernels: it is dropped, and said so
        _, report = convert(net, "norm-equiv", image())
        assert ("BatchNorm2d", "Identity") in {(c.was, c.now) for c in report.changes}
    else:
        _, report = convert(net, "norm-equiv", image())
        assert ("Conv2d", "Conv2d of ratios") in {(c.was, c.now) for c in report.changes}


@pytest.mark.parametrize(
    ("function", "proportion"),
    [
        (lambda x, y: torch.add(x, y, alpha=0.25), 0.2),
        (lambda x, y: torch.add(input=x, other=y, alpha=0.25), 0.2),
        (lambda x, y: x.add(y, alpha=-0.25), -0.25),
        (lambda x, y: torch.sub(x, y, alpha=0.1), -0.1),
        (lambda x, y: x.sub(other=y, alpha=-0.25), 0.2),
    ],
)
def test_the_proportions_of_a_sum_include_alpha(function, proportion: float) -> None:
    twin, _ = convert(Calls(function), "norm-equiv", image())
    (t,) = (p.item() for name, p in twin.named_parameters() if name.endswith(".t"))
    assert t == pytest.approx(proportion)


class LinearOfDifferences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(1, 1, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return x + F.conv2d(x - x.mean((2, 3), keepdim=True), self.kernel, padding=1)


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.mix = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        normal = self.norm(x)
        return x + self.mix(normal, normal, normal)[0]


def test_modules_without_a_bias_of_their_own_on_differences() -> None:
    _, report = convert(LinearOfDifferences(), "norm-equiv", image(1, 1, 8, 8))
    assert ("conv2d()", "conv2d() of ratios") in {(c.was, c.now) for c in report.changes}
    _, report = convert(Tokens(), "norm-equiv", image(1, 6, 4))
    assert ("LayerNorm", "LayerNorm of ratios") in {(c.was, c.now) for c in report.changes}


@pytest.mark.parametrize("to", ["scale-equiv", "norm-equiv", "norm-equiv-residual"])
def test_an_example_that_does_not_fit_is_refused_in_a_sentence(to: str) -> None:
    with pytest.raises(UsageError, match=r"Conv2d does not take an input of shape \(1, 3, 8, 8\)"):
        convert(nn.Conv2d(1, 1, 1), to, image(1, 3, 8, 8))


def test_an_example_that_fits_in_use_only_is_taken() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))  # which trains on no single value
    _, report = convert(net, "scale-equiv", image(1, 1, 1, 1))
    assert report.certificate.scale is Status.PROVEN


@pytest.mark.parametrize(
    ("layer", "shape"), [(nn.Conv1d, (1, 1, 20)), (nn.Conv3d, (1, 1, 4, 5, 6))]
)
def test_the_residual_form_of_lines_and_volumes(layer: type[nn.Module], shape) -> None:
    net = nn.Sequential(layer(1, 4, 3, padding=1), nn.ReLU(), layer(4, 1, 1)).double()
    twin, report = convert(net, "norm-equiv-residual", image(*shape))
    assert report.certificate.norm is Status.PROVEN
    y = image(*shape).double()
    torch.testing.assert_close(twin(7 * y + 100), 7 * twin(y) + 100)


def test_the_residual_form_needs_neighbours() -> None:
    with pytest.raises(UsageError, match=r"shape \(1, 6\) has no local mean"):
        convert(nn.Linear(6, 6), "norm-equiv-residual", image(1, 6))


@pytest.mark.parametrize(
    ("to", "law"),
    [("scale-equiv", "scale"), ("norm-equiv", "norm"), ("norm-equiv-residual", "scale")],
)
def test_a_network_of_this_package_says_what_it_has_become(
    to: str, law: str, tmp_path: Path
) -> None:
    net = tiny("fdncnn", "ordinary")
    config = copy.deepcopy(net.config)
    twin, _ = convert(net, to, image())
    changed = twin.inner if to == "norm-equiv-residual" else twin
    assert changed.equivariance == law
    assert changed.variant == ("norm-equiv" if law == "norm" else "scale-equiv")
    with pytest.raises(UsageError, match="only networks built by"):
        normeq.save(changed, tmp_path / "twin.safetensors", {})
    assert (net.config, net.variant, net.equivariance) == (config, "ordinary", "none")


def test_what_needs_no_change_can_still_be_saved(tmp_path: Path) -> None:
    twin, report = convert(tiny("fdncnn", "norm-equiv"), "norm-equiv", image())
    assert not report.changes
    normeq.save(twin, tmp_path / "twin.safetensors", {})
    assert normeq.load(tmp_path / "twin.safetensors").equivariance == "norm"


def test_the_report_names_layers_as_people_do() -> None:
    _, report = convert(nn.Conv1d(1, 1, 3, padding=1), "norm-equiv", image(1, 1, 9))
    assert [(c.was, c.now) for c in report.changes] == [("Conv1d", "affine Conv1d")]


def test_a_computed_bias_is_kept_on_ratios() -> None:
    conv = nn.Conv2d(1, 2, 3)
    nn.utils.parametrize.register_parametrization(conv, "bias", nn.Tanh())
    _, report = convert(normed(conv), "scale-equiv", image())
    assert ("Conv2d", "Conv2d of ratios") in {(c.was, c.now) for c in report.changes}


POOLS = {
    "layer": (
        lambda p: nn.AvgPool2d(3, 1, p),
        lambda p: ("AvgPool2d", "AvgPool2d without its padding"),
    ),
    "call": (
        lambda p: Calls(lambda _, y: F.avg_pool2d(y, 3, 1, p)),
        lambda p: ("avg_pool2d()", "without its padding"),
    ),
    "call with all": (
        lambda p: Calls(lambda _, y: F.avg_pool2d(y, 3, 1, (p, p), False, True)),
        lambda p: ("avg_pool2d()", "without its padding"),
    ),
}


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("name", POOLS)
def test_average_pools_change_only_if_they_are_padded(name: str, padding: int) -> None:
    build, change = POOLS[name]
    _, report = convert(build(padding), "norm-equiv", image())
    assert report.certificate.norm is Status.PROVEN
    assert (change(padding) in {(c.was, c.now) for c in report.changes}) == (padding != 0)


@pytest.mark.parametrize(
    ("function", "was"),
    [
        (lambda _, y: F.relu(input=y), "relu()"),
        (lambda _, y: F.gelu(input=y), "gelu()"),
        (lambda _, y: F.dropout(input=y, p=0.3), "dropout()"),
        (lambda _, y: F.pad(input=y, pad=(1, 1, 0, 2)), "pad()"),
        (lambda _, y: F.avg_pool2d(input=y, kernel_size=3, stride=1, padding=1), "avg_pool2d()"),
    ],
)
def test_calls_by_keyword(function, was: str) -> None:
    _, report = convert(Calls(function, channels=2), "norm-equiv", image(1, 2, 8, 8))
    assert report.certificate.norm is Status.PROVEN
    assert was in {change.was for change in report.changes}


@pytest.mark.parametrize(
    ("pads", "shape"),
    [
        ((0, 1), (2, 8, 9)),
        ((-1, 0, 2, -2), (2, 8, 7)),
        ((0, 0, 0, 0, 0, 2), (4, 8, 8)),
    ],
)
def test_padding_of_any_axes(pads: tuple[int, ...], shape: tuple[int, ...]) -> None:
    net = Calls(lambda _, y: F.pad(y, pads), channels=2)
    twin, report = convert(net, "norm-equiv", image(1, 2, 8, 8))
    assert report.certificate.norm is Status.PROVEN
    assert twin(image(1, 2, 8, 8)).shape == (1, *shape)
    assert not convert(twin, "norm-equiv", image(1, 2, 8, 8))[1].changes


def test_dropout_by_keyword_stays_in_the_scale_equivariant_form() -> None:
    net = Calls(lambda _, y: F.dropout(input=F.gelu(input=y), p=0.3))
    _, report = convert(net, "scale-equiv", image())
    assert [change.now for change in report.changes] == ["none", "gelu() of ratios", "Dropout"]


@pytest.mark.parametrize(
    "change",
    [
        lambda net, y: y.relu_(),
        lambda net, y: F.relu(y, inplace=True),
        lambda net, y: net.relu(y),
    ],
    ids=["method", "function", "layer"],
)
def test_changes_in_place_are_changes(change: Callable[[nn.Module, Tensor], Tensor]) -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3, padding=1)
            self.relu = nn.ReLU(inplace=True)
            self.last = nn.Conv2d(4, 1, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            y = self.conv(x)
            change(self, y)  # the outcome has no name
            return self.last(y)

    twin, report = convert(InPlace(), "norm-equiv", image())
    assert report.certificate.norm is Status.PROVEN
    y = image() - 0.5
    mirrored = twin(y) + twin(-y)
    assert mirrored.abs().max() > 1e-4, "without an activation the twin would be odd"


def test_what_a_scale_equivariant_twin_changes_in_place_stays() -> None:
    def halved(_: Tensor, y: Tensor) -> Tensor:
        z = F.gelu(y)
        z.mul_(0.1)
        return z

    net = Calls(halved)
    nn.init.zeros_(net.conv.bias)
    twin, _ = convert(net, "scale-equiv", image())
    torch.testing.assert_close(twin(image()), net(image()))


def test_a_shared_weight_is_not_scaled_for_another_layer() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Conv2d(1, 1, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(1)
            self.norm.running_var.fill_(4.0)
            self.b = nn.Conv2d(1, 1, 3, padding=1, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.b(self.norm(self.a(x)))

    net = Tied().eval()
    twin, _ = convert(net, "scale-equiv", image())
    torch.testing.assert_close(twin(image()), net(image()))


def test_a_layer_with_a_forward_pass_of_its_own_is_left_for_the_certificate() -> None:
    class Standardised(nn.Conv2d):
        def forward(self, x: Tensor) -> Tensor:
            weight = self.weight - self.weight.mean()
            return F.conv2d(x, weight / weight.std(), None, padding=1)

    torch.manual_seed(0)
    norm = nn.BatchNorm2d(2)
    norm.running_var.fill_(4.0)
    net = nn.Sequential(Standardised(1, 2, 3), norm, nn.Conv2d(2, 1, 1, bias=False)).eval()
    twin, _ = convert(net, "scale-equiv", image())
    torch.testing.assert_close(twin(image()), net(image()))


def test_modes_heads_buffers_and_hooks_are_kept() -> None:
    class Headed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3, padding=1)
            self.norm = nn.BatchNorm2d(2)
            self.head = nn.Linear(3, 4)
            self.register_buffer("scratch", torch.zeros(2), persistent=False)
            self.last = nn.Conv2d(2, 1, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(F.gelu(self.norm(self.conv(x))) + self.scratch.view(1, 2, 1, 1))

    net = Headed().train()
    net.norm.eval()
    calls: list[int] = []
    net.register_forward_hook(lambda *_: calls.append(1))
    wrapped, _ = convert(net, "norm-equiv-wrapped", image())
    assert [m.training for m in wrapped.modules() if isinstance(m, nn.BatchNorm2d)] == [False]
    twin, _ = convert(net, "scale-equiv", image())
    assert "head.weight" in twin.state_dict()
    assert "scratch" not in twin.state_dict()
    calls.clear()
    twin(image())
    assert calls == [1]
