from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from helpers import classic_networks, weighting_networks  # noqa: F401 - they fill CASES
from helpers.network_cases import CASES, Case, Of, affine
from helpers.soundness import assert_sound
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import normeq
from normeq.certification import Status, certify
from normeq.errors import UsageError
from normeq.nn import AffineConv2d, SortPool
from normeq.reproduce.networks import NLRN, DnCNN, Restormer, SwinIR, random_network


@pytest.mark.parametrize("name", sorted(CASES))
def test_classic_networks(name: str) -> None:
    torch.manual_seed(1)
    expected: Case = CASES[name]
    net = expected.build()
    image = torch.rand(1, 1, 16, 20, dtype=torch.float64) - 0.3
    certificate = certify(net, image)
    found = {(c.path, c.operation, c.property) for c in certificate.culprits}
    assert expected.culprits <= found, certificate.table()
    assert str(certificate.scale) == expected.scale, certificate.table()
    assert str(certificate.shift) == expected.shift, certificate.table()
    if name not in ("added_noise", "dropout_in_training"):
        assert_sound(net, certificate, image)


LITERATURE = {
    "DnCNN": (lambda: DnCNN(depth=4), "batch_norm"),
    "NLRN": (lambda: NLRN(steps=2), "softmax"),
    "SwinIR": (lambda: SwinIR(groups=1), "layer_norm"),
    "Restormer": (lambda: Restormer(blocks=(1, 1), heads=(1, 2)), "gelu"),
}


@pytest.mark.parametrize("name", LITERATURE)
def test_networks_of_the_literature(name: str) -> None:
    build, culprit = LITERATURE[name]
    net = random_network(build)
    image = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    certificate = certify(net, image)
    assert certificate.scale is Status.BROKEN
    assert certificate.shift is Status.BROKEN
    assert culprit in {culprit.operation for culprit in certificate.culprits}
    assert not any(culprit.unknown for culprit in certificate.culprits), certificate.table()
    assert_sound(net, certificate, image)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "SwinIR")) for n in LITERATURE]
)
def test_normalisation_around_any_network_is_proven(name: str) -> None:
    net = normeq.nn.Normalized(random_network(LITERATURE[name][0]), "mean-std")
    image = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    certificate = certify(net, image)
    assert certificate.norm is Status.PROVEN, certificate.table()
    assert_sound(net, certificate, image)


def test_kernel_sums_that_are_slightly_off_are_told_from_rounding() -> None:
    net = nn.Sequential(affine(1, 4), SortPool(), affine(4, 1))
    assert certify(net).shift is Status.PROVEN
    for layer in (net[0], net[2]):
        torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert certify(net).shift is Status.PROVEN
    with torch.no_grad():
        net[0].weight[2, 0, 1, 1] += 1e-4
    certificate = certify(net)
    assert certificate.shift is Status.BROKEN
    assert {culprit.path for culprit in certificate.culprits} >= {"0"}


@pytest.mark.parametrize("told", [(), (0.1,)])
def test_trained_networks_are_proven_within_little_more_than_rounding(told: Any) -> None:
    certificate = certify(normeq.load("default"), [torch.zeros(1, 1, 16, 16), *told])
    assert certificate.norm is Status.PROVEN
    assert certificate.bound < 1e-4


def test_a_detour_through_half_precision_shows_in_the_bound() -> None:
    net = Of(lambda net, x: net.conv(x.half().to(x.dtype)), conv=affine(1, 2))
    certificate = certify(net)
    assert certificate.norm is Status.PROVEN
    assert certify(net.conv).bound < 1e-4 < 1e-3 < certificate.bound
    image = torch.rand(1, 1, 8, 8)
    with torch.no_grad():
        error = (net(image + 30) - net(image) - 30).abs().max()
    assert 1e-3 < error <= certificate.bound * 31


def test_noise_levels_scale_but_do_not_move() -> None:
    def forward(net, x, sigma):
        levels = sigma.reshape(-1, 1, 1, 1).expand_as(x)
        return net.conv(torch.cat((x, levels), 1))

    class Conditioned(Of):
        def forward(self, x, sigma):
            return self.function(self, x, sigma)

    image, sigma = torch.rand(1, 1, 8, 8), torch.tensor([0.2])
    free = Conditioned(forward, conv=AffineConv2d(2, 1, 3, padding=1, free_channels=1))
    certificate = certify(free, (image, 0.2))
    assert certificate.norm is Status.PROVEN
    assert_sound(free, certify(free, (image, sigma)), image.double(), sigma.double())
    bound = Conditioned(forward, conv=AffineConv2d(2, 1, 3, padding=1))
    certificate = certify(bound, (image, sigma))
    assert certificate.shift is Status.BROKEN
    assert_sound(bound, certificate, image.double(), sigma.double())


def test_status_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="compare it"):
        bool(Status.PROVEN)


def test_examples_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="pass an example"):
        certify(nn.Linear(3, 3))
    with pytest.raises(UsageError, match="does not take an input of shape"):
        certify(nn.Conv2d(3, 3, 1), torch.zeros(1, 2, 8, 8))
    with pytest.raises(UsageError, match="start with one"):
        certify(nn.Conv2d(3, 3, 1), [2])


def test_the_network_is_left_alone() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).train()
    before = copy.deepcopy(net.state_dict())
    certify(net)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert net.training


def test_table_and_picture(tmp_path) -> None:
    certificate = certify(CASES["dncnn_like"].build())
    table = certificate.table()
    assert table.splitlines()[2] == "norm   broken"
    assert "first" in table
    assert "[1] no bias (bias=False)" in table
    certificate.draw(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 5000


_LAYERS = {
    "affine": lambda: affine(4, 4),
    "plain": lambda: nn.Conv2d(4, 4, 3, padding=1, bias=False),
    "reflect": lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
    "sort": SortPool,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "norm": lambda: nn.GroupNorm(2, 4),
    "center": lambda: Of(lambda net, x: x - x.mean((2, 3), keepdim=True)),
    "double": lambda: Of(lambda net, x: x + x),
    "gate": lambda: Of(lambda net, x: x * torch.sigmoid(x)),
    "square": lambda: Of(lambda net, x: x.square()),
    "root": lambda: Of(lambda net, x: x.abs().sqrt()),
    "pool": lambda: nn.AvgPool2d(3, 1, 1),
    "mixture": lambda: Of(lambda net, x: 0.3 * x + 0.7 * x.roll(1, 2)),
}


@settings(max_examples=8)
@given(st.lists(st.sampled_from(sorted(_LAYERS)), min_size=1, max_size=4), st.booleans())
def test_no_stack_of_layers_is_proven_wrongly(names: list[str], residual: bool) -> None:
    torch.manual_seed(len(names))
    layers = nn.Sequential(affine(1, 4), *(_LAYERS[name]() for name in names))
    net = Of(lambda net, x: x[:, :1] + net.layers(x) if residual else net.layers(x), layers=layers)
    image = torch.rand(1, 1, 6, 8, dtype=torch.float64)
    assert_sound(net, certify(net, image), image)


def test_half_precision_narrows_the_range() -> None:
    net = Of(lambda net, x: net.conv(x.half()).to(x.dtype), conv=affine(1, 2).half())
    certificate = certify(net, torch.rand(1, 1, 8, 8))
    assert certificate.norm is Status.PROVEN, certificate.table()
    low, high = certificate.range.gain
    assert 1e-4 <= low < 1 < high <= 1e4
    assert certificate.range.offset[1] <= 1e4
    wide = certify(affine(1, 2)).range
    assert wide.gain[0] < 1e-30 < 1e30 < wide.gain[1]


def test_what_happens_outside_tracing_is_measured() -> None:
    class Hidden(nn.Module):
        def forward(self, x):
            return x if torch.compiler.is_compiling() else 1.004 * x

    certificate = certify(Hidden(), torch.rand(1, 1, 8, 8))
    assert certificate.scale is Status.PROVEN
    assert certificate.shift is Status.UNKNOWN, certificate.table()


def test_broken_comes_with_a_counterexample() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
    certificate = certify(net)
    for which, found in certificate.counterexamples.items():
        assert getattr(certificate, which) is Status.BROKEN
        with torch.no_grad():
            double = copy.deepcopy(net).double()
            changed = double(found.gain * found.image + found.offset)
            error = (changed - found.gain * double(found.image) - found.offset).abs().max()
        assert error > 1e-6 * found.gain
    assert set(certificate.counterexamples) == {"scale", "shift"}
    undone = Of(lambda net, x: torch.relu(x) - torch.relu(-x))
    certificate = certify(undone, torch.rand(1, 1, 8, 8))
    assert certificate.shift is Status.UNKNOWN
    assert certificate.counterexamples == {}


def test_every_branch_on_the_size_is_met() -> None:
    def forward(net, x):
        rows, columns = (-n % 4 for n in x.shape[-2:])
        padded = nn.functional.pad(x, (0, columns, 0, rows), mode=net.mode)
        small = net.down(padded)
        return net.up(small)[..., : x.shape[-2], : x.shape[-1]]

    class Padded(Of):
        mode = "replicate"

    net = Padded(
        forward, down=AffineConv2d(1, 4, 4, 4), up=normeq.nn.AffineConvTranspose2d(4, 1, 4)
    )
    certificate = certify(net)
    assert certificate.norm is Status.PROVEN, certificate.table()
    assert {height % 4 for height, _ in certificate.sizes} == {0, 1, 2, 3}
    net.mode = "constant"  # harmless where nothing is missing
    certificate = certify(net)
    assert certificate.shift is Status.BROKEN
    assert certify(net, torch.zeros(1, 1, 16, 16)).norm is Status.PROVEN


def test_other_questions() -> None:
    def pooled(net, x):
        return torch.softmax((x - x.mean()).flatten(1)[:, :3] / x.std(), 1)

    image = torch.rand(1, 2, 8, 8)
    certificate = certify(Of(pooled), image, question="invariant")
    assert certificate.norm is Status.PROVEN, certificate.table()
    assert certify(Of(pooled), image).norm is Status.BROKEN
    each = Of(lambda net, x: x - x.mean((2, 3), keepdim=True) + x.amax((2, 3), keepdim=True))
    assert certify(each, image, question="per-channel").norm is Status.PROVEN
    mixed = Of(lambda net, x: x.mean(1, keepdim=True).expand_as(x))
    assert certify(mixed, image).norm is Status.PROVEN
    assert certify(mixed, image, question="per-channel").norm is Status.BROKEN
    with pytest.raises(UsageError, match="is unknown"):
        certify(each, image, question="true?")


def test_declared_inputs() -> None:
    class Two(nn.Module):
        def forward(self, x, other):
            return x + 0 * x * other

    class Guided(nn.Module):
        def forward(self, x, guide):
            weights = torch.softmax((guide - guide.mean()).flatten(2) / guide.std(), 2)
            return x + 0 * x + (weights * x.flatten(2)).sum() - x.mean()

    class Masked(nn.Module):
        def forward(self, x, mask):
            return x + mask * (x - x.mean())

    pair = [torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8)]
    assert certify(Masked(), pair, inputs=["image", "fixed"]).norm is Status.PROVEN
    assert certify(Masked(), pair).norm is Status.BROKEN  # of a noise level
    assert certify(Guided(), pair, inputs=["image", "own-image"]).norm is Status.PROVEN
    assert certify(Masked(), pair, inputs=["image", "own-image"]).norm is Status.BROKEN
    with pytest.raises(UsageError, match="for each of the 2 arguments"):
        certify(Two(), pair, inputs=["image"])


@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of:FutureWarning")
def test_weights_computed_by_hooks_are_no_obstacle() -> None:
    hooked = nn.utils.weight_norm(nn.Conv2d(1, 4, 3, bias=False))
    net = nn.Sequential(hooked, nn.ReLU(), nn.utils.spectral_norm(nn.Conv2d(4, 1, 3, bias=False)))
    net(torch.rand(1, 1, 8, 8))
    certificate = certify(net.eval())
    assert certificate.scale is Status.PROVEN, certificate.table()
    assert certificate.shift is Status.BROKEN
    for to in ("scale-equiv", "norm-equiv-wrapped"):
        twin, _ = normeq.convert(net, to, torch.rand(1, 1, 8, 8))
        if to == "scale-equiv":
            torch.testing.assert_close(twin(net_image := torch.rand(1, 1, 8, 8)), net(net_image))
    normeq.fold(net)


def test_a_transformer_layer_is_certified() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    certificate = certify(layer, torch.rand(1, 5, 8))
    assert certificate.norm is Status.BROKEN, certificate.table()


class AuthorsPadding(nn.Module):
    """A network of three scales around which images are padded with their mean, as in the paper."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x):
        height, width = x.size()[-2:]
        bottom = int(np.ceil(height / 8) * 8 - height)
        right = int(np.ceil(width / 8) * 8 - width)
        x = nn.functional.pad(x, (0, right, 0, bottom), mode="constant", value=float(x.mean()))
        return self.net(x)[..., :height, :width]


def test_the_authors_kind_of_padding_is_proven_at_even_and_odd_sizes() -> None:
    inner = normeq.create("drunet", "norm-equiv", widths=(4, 4, 6, 6), blocks=1).eval()
    certificate = certify(AuthorsPadding(inner))
    assert certificate.norm is Status.PROVEN, certificate.table()
    assert {height % 8 for height, _ in certificate.sizes} == set(range(8))
    ordinary = normeq.create("drunet", "scale-equiv", widths=(4, 4, 6, 6), blocks=1).eval()
    certificate = certify(AuthorsPadding(ordinary))
    assert (certificate.scale, certificate.shift) == (Status.PROVEN, Status.BROKEN)


def test_large_outputs_are_rounded_by_more() -> None:
    def recurrent(net, x):
        state = x
        for _ in range(8):  # grows by a factor of ten each time, and so does its rounding
            state = 10 * (state - state.mean()) + x
        return state

    certificate = certify(Of(recurrent), torch.rand(1, 1, 8, 8))
    assert certificate.norm is Status.PROVEN, certificate.table()
