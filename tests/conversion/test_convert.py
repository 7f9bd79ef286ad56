from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from helpers.foreign_networks import Attentive, Conditioned, ResNet, Squared, Tokenwise, UNet
from helpers.small_networks import tiny
from helpers.soundness import assert_sound, measure
from torch import nn
from torch.nn import functional as F

import normeq
from normeq.certification import Status
from normeq.conversion import convert
from normeq.nn import Enclosed, EquivariantAttention, SortPool
from normeq.reproduce.networks import DnCNN, random_network

TARGETS = ("scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped")


def example(seed: int = 0, size: int = 16) -> torch.Tensor:
    return torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(seed))


def trained_looking(net: nn.Module) -> nn.Module:
    """Give batch norms statistics of their own and every bias a value."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 1.5)
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            parameter.data.uniform_(-0.2, 0.2)
    return net.eval()


FOREIGN = {
    "unet": lambda: UNet(),
    "unet-bilinear": lambda: UNet(bilinear=True),
    "resnet": lambda: ResNet(),
    "dncnn": lambda: random_network(DnCNN),
}


def _mostly_slow(name: str) -> Any:
    slow = name in ("unet-bilinear", "dncnn")
    return pytest.param(name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", [_mostly_slow(name) for name in FOREIGN])
def test_twins_have_the_property_and_the_original_is_untouched(name: str, to: str) -> None:
    net = trained_looking(FOREIGN[name]())
    before = copy.deepcopy(net.state_dict())
    twin, report = convert(net, to, example())
    assert report.certificate.scale is Status.PROVEN
    if to != "scale-equiv":
        assert report.certificate.norm is Status.PROVEN
    assert_sound(twin, report.certificate, example(1).double())
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert twin(example(2)).shape == net(example(2)).shape


def test_a_twin_can_be_trained_saved_folded_and_exported() -> None:
    net = trained_looking(UNet())
    twin, _ = convert(net, "norm-equiv", example())
    optimiser = torch.optim.Adam(twin.parameters(), 1e-3)
    losses = []
    for _ in range(3):
        loss = (twin(example(3)) - 0.5).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in twin.parameters())

    again, _ = convert(net, "norm-equiv", example())
    buffer = io.BytesIO()
    torch.save(twin.state_dict(), buffer)
    buffer.seek(0)
    again.load_state_dict(torch.load(buffer, weights_only=True))
    with torch.no_grad():
        expected = twin(example(4))
        assert torch.equal(again(example(4)), expected)
        assert torch.allclose(normeq.nn.fold(twin)(example(4)), expected, atol=1e-5)
        exported = torch.export.export(twin, (example(4),), strict=False).module()
        assert torch.allclose(exported(example(4)), expected, atol=1e-6)
    assert measure(twin, example(5).double())["shift"] < 1e-9


def test_a_rewritten_network_can_be_pickled() -> None:
    twin, _ = convert(ResNet("silu"), "scale-equiv", example())
    assert twin.training
    assert not torch.equal(twin(example(1)), twin(example(1)))  # it drops out
    twin.eval()
    assert torch.equal(twin(example(1)), twin(example(1)))
    buffer = io.BytesIO()
    torch.save(twin, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    with torch.no_grad():
        assert torch.equal(again(example(1)), twin(example(1)))
        assert twin(torch.rand(2, 1, 24, 18)).shape == (2, 1, 24, 18)


def test_names_and_classes_stay_where_they_can() -> None:
    net = UNet().eval()
    twin, report = convert(net, "norm-equiv", example())
    assert type(twin) is UNet
    assert isinstance(twin.up1.conv.double_conv[2], SortPool)
    assert {path.removesuffix(".parametrizations.weight.original")
            for path, _ in twin.named_parameters()} == {
        path.removesuffix(".weight") for path, p in net.named_parameters()
        if path.endswith("weight") and p.ndim == 4
    }  # fmt: skip
    assert report.parameters[0] == sum(p.numel() for p in net.parameters())
    assert "10 x  ReLU  ->  SortPool" in report.table()
    assert "10 x  BatchNorm2d  ->  folded into Conv2d" in report.table()


def test_folded_batch_norm_leaves_the_function_but_for_shifts() -> None:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
        nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6),
        nn.BatchNorm2d(6),
    )  # fmt: skip
    for norm in (net[1], net[4], net[5]):
        norm.running_var.uniform_(0.5, 2)
        norm.weight.data.uniform_(0.5, 2)
    net.eval()
    twin, report = convert(net, "scale-equiv", example())
    with torch.no_grad():
        assert torch.allclose(twin(example(1)), net(example(1)), atol=1e-5)
    assert report.moved < 1e-5
    assert [change.now for change in report.changes] == [
        "folded into Conv2d", "folded into ConvTranspose2d", "ChannelGain"
    ]  # fmt: skip


def test_functional_calls_and_proportions() -> None:
    twin, report = convert(ResNet("silu"), "norm-equiv", example())
    counts = {(change.was, change.now) for change in report.changes}
    assert ("silu()", "SortPool") in counts
    assert ("dropout()", "none") in counts
    assert ("ConvTranspose2d", "Sequential") in counts
    proportions = sorted(p.item() for name, p in twin.named_parameters() if name.endswith(".t"))
    assert proportions == pytest.approx([-1.0, 1 / 6, 1 / 6, 0.5])


def test_noise_levels_stay_free() -> None:
    sigma = torch.tensor([0.2])
    net = Conditioned()
    for to in TARGETS:
        twin, report = convert(net, to, (example(), sigma))
        assert report.certificate.scale is Status.PROVEN
        assert_sound(twin, report.certificate, example(1).double(), sigma.double())
    twin, _ = convert(net, "norm-equiv", (example(), sigma))
    assert torch.equal(twin.body[0].weight[:, 1], net.body[0].weight[:, 1])


@pytest.mark.parametrize("fused", [True, False])
def test_attention(fused: bool) -> None:
    net = Attentive(fused)
    twin, report = convert(net, "norm-equiv", example())
    assert report.certificate.norm is Status.PROVEN
    assert_sound(twin, report.certificate, example(1).double())
    assert isinstance(twin.mix, nn.Linear if fused else EquivariantAttention)


class OwnCalls(nn.Module):
    """Operations on numbers, masks and gates in the forward pass of the network itself."""

    def __init__(self, forward: str) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 1, 3, padding=1)
        self.scale = nn.Parameter(torch.full((1, 4, 1, 1), 0.3))
        self.code = compile(forward, "<forward>", "eval")

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return eval(self.code, {"torch": torch, "F": F, "self": self, "x": x, "mask": mask})


@pytest.mark.parametrize(
    ("forward", "became"),
    [
        ("2.0 * self.b(self.a(x))", "mul() of ratios"),
        ("self.b(self.a(x - 0.5)) + 0.5", "add() of ratios"),
        ("1 - self.b(self.a(x))", "sub() of ratios"),
        ("(x + self.b(self.a(x))) / 2", "none"),
        ("x + self.b(self.scale * F.relu(self.a(x)))", "mul() of ratios"),
        ("torch.clamp(x - self.b(self.a(x)), 0, 1)", "none"),
        ("x + self.b(self.a(x) * torch.sigmoid(self.a(x)))", "sigmoid() of ratios"),
        ("self.b(F.normalize(self.a(x), dim=1))", "normalize() of ratios"),
    ],
)
def test_numbers_and_gates_in_the_networks_own_forward(forward: str, became: str) -> None:
    torch.manual_seed(0)
    twin, report = convert(OwnCalls(forward).eval(), "norm-equiv", example(size=8))
    assert became in {change.now for change in report.changes}
    assert_sound(twin, report.certificate, example(1, size=8).double())


@pytest.mark.parametrize(
    ("forward", "enclosed"),
    [("self.b(self.a(x)) * mask", True), ("x * (1 - mask) + self.b(self.a(x)) * mask", False)],
)
def test_masks_in_the_networks_own_forward(forward: str, enclosed: bool) -> None:
    torch.manual_seed(0)
    mask = (example(2, size=8) > 0.5).int()
    twin, report = convert(OwnCalls(forward).eval(), "norm-equiv", (example(size=8), mask))
    assert ("mul() of ratios" in {change.now for change in report.changes}) == enclosed
    y = example(1, size=8).double()
    twin = twin.double()
    torch.testing.assert_close(twin(7 * y + 100, mask), 7 * twin(y, mask) + 100)


@pytest.mark.parametrize("build", [lambda: Attentive(True), lambda: Squared()])
def test_the_network_itself_may_see_ratios(build) -> None:
    for to in ("scale-equiv", "norm-equiv-residual"):
        twin, report = convert(build(), to, example(size=8))
        assert any(change.now.endswith("of ratios") for change in report.changes)
        assert_sound(twin, report.certificate, example(1, size=8).double())


@pytest.mark.parametrize(
    ("build", "enclosed"),
    [
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 1), nn.Sigmoid(), nn.Conv2d(2, 1, 1)), "Sigmoid"),
        (lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)), "GroupNorm"),
        (lambda: nn.Sequential(nn.ConvTranspose2d(1, 1, 5, 2)), "ConvTranspose2d"),
        (lambda: nn.Sequential(nn.Conv2d(1, 4, 1), nn.InstanceNorm2d(4)), "InstanceNorm2d"),
        (lambda: Tokenwise(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), "layer"),
        (lambda: Tokenwise(nn.Sequential(nn.LayerNorm(8), nn.GLU(), nn.Linear(4, 8))), "layer"),
    ],
)
@pytest.mark.parametrize("to", ["scale-equiv", "norm-equiv"])
def test_what_has_no_counterpart_of_its_own_sees_ratios(build, enclosed: str, to: str) -> None:
    net = build().eval()
    twin, report = convert(net, to, example(size=8))
    status = report.certificate.scale if to == "scale-equiv" else report.certificate.norm
    assert status is Status.PROVEN
    layers = [layer for layer in twin.modules() if isinstance(layer, Enclosed)]
    if not (enclosed == "ConvTranspose2d" and to == "scale-equiv"):
        assert layers
        assert all(layer.offset == (to == "norm-equiv") for layer in layers)
    assert_sound(twin, report.certificate, example(size=8).double())


def test_at_their_usual_size_enclosed_layers_do_what_they_did() -> None:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False), nn.Sigmoid(), nn.Conv2d(4, 1, 1, bias=False)
    )
    twin, report = convert(net, "scale-equiv", example())
    assert [change.now for change in report.changes] == ["Sigmoid of ratios"]
    torch.testing.assert_close(twin(example()), net(example()))
    assert report.moved < 1e-5


def test_the_local_form_is_local() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
    twin, report = convert(net, "norm-equiv-local", example())
    assert report.certificate.norm is Status.PROVEN
    image = torch.rand(1, 1, 24, 160)
    bright = image.clone()
    bright[..., 0] += 1000.0
    far = twin.reach + 2
    with torch.no_grad():
        changed, still = twin(bright), twin(image)
    assert not torch.allclose(changed[..., :5], still[..., :5])
    torch.testing.assert_close(changed[..., far + 1 :], still[..., far + 1 :])
    constant = torch.full((1, 1, 9, 9), 7.0)
    torch.testing.assert_close(twin(constant), constant)


def test_a_network_of_this_package_converts_and_stays_close() -> None:
    net = tiny("fdncnn", "scale-equiv")
    twin, report = convert(net, "norm-equiv-residual", example())
    assert report.certificate.norm is Status.PROVEN
    with torch.no_grad():  # a zero-mean image hardly meets the local mean
        y = torch.randn(1, 1, 32, 32)
        assert F.mse_loss(twin(y), net(y)) < 0.1 * net(y).var()
    affine, report = convert(tiny("unet", "ordinary"), "norm-equiv", example())
    assert report.certificate.norm is Status.PROVEN
    assert affine.channels == 1


def test_layers_of_one_and_three_dimensions() -> None:
    line = nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.GELU(), nn.Conv1d(4, 1, 1))
    cube = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(4, 1, 1))
    flat = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 6))
    for net, shape in ((line, (1, 1, 9)), (cube, (1, 1, 5, 5, 5)), (flat, (1, 6))):
        _, report = convert(net, "norm-equiv", torch.rand(shape))
        assert report.certificate.norm is Status.PROVEN


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.PixelShuffle(2)), (1, 1, 8, 8)),
        (nn.Conv2d(3, 2, 3, padding=1), (1, 3, 8, 8)),
        (nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.ConvTranspose1d(4, 1, 2, 2)), (1, 1, 16)),
        (
            nn.Sequential(nn.Conv3d(1, 4, 2, 2), nn.ReLU(), nn.ConvTranspose3d(4, 1, 2, 2)),
            (1, 1, 4, 6, 8),
        ),
    ],
    ids=["super-resolution", "channels", "1-D", "3-D"],
)
@pytest.mark.parametrize("to", ["norm-equiv", "norm-equiv-residual", "norm-equiv-local"])
def test_other_shapes_and_dimensions(net: nn.Module, shape: tuple[int, ...], to: str) -> None:
    image = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    twin, report = convert(net, to, image)
    assert report.certificate.norm is Status.PROVEN
    assert twin(image).shape == net(image).shape
    assert_sound(twin, report.certificate, image.double())
    if to == "norm-equiv":
        assert not any(isinstance(layer, Enclosed) for layer in twin.modules())
