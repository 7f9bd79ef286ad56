"""Batch norm that stays in training mode learns from ratios; the law holds in both modes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from normeq.certification import Status, certify
from normeq.conversion import convert, load_twin, save_twin
from normeq.nn import Enclosed

WIDTH = 4
CONVERTED = ("scale-equiv", "norm-equiv", "norm-equiv-residual")

exponents = st.lists(st.floats(-4, 4), min_size=3, max_size=3)
offsets = st.lists(st.floats(-100, 100), min_size=3, max_size=3)


def network() -> nn.Module:
    """Return a network whose batch norms have learnt something, in training mode."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH), nn.ReLU(),
        nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH), nn.ReLU(),
        nn.Conv2d(WIDTH, 1, 3, padding=1),
    )  # fmt: skip
    for norm in (net[1], net[4]):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.uniform_(norm.bias, -0.5, 0.5)
    for _ in range(100):
        net(images())
    return net


def images() -> Tensor:
    return torch.rand(3, 1, 12, 12)


def column(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64).reshape(-1, 1, 1, 1)


@pytest.mark.parametrize("offset", [False, True])
@settings(max_examples=25, deadline=None)
@given(exponents=exponents, offsets=offsets)
def test_the_law_holds_for_every_sample_of_a_batch(
    offset: bool, exponents: list[float], offsets: list[float]
) -> None:
    norm = Enclosed(nn.BatchNorm2d(WIDTH), 0.7, offset=offset).double()
    nn.init.uniform_(norm.inner.bias, -1, 1)
    x = torch.randn(3, WIDTH, 5, 5, dtype=torch.float64)
    gain, shift = 10 ** column(exponents), column(offsets) * offset
    for training in (True, False):
        norm.train(training)
        expected = gain * norm(x) + shift
        error = (norm(gain * x + shift) - expected).abs() / (gain + shift.abs())
        assert error.max() < 1e-9


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("training", [True, False])
def test_the_certificate_proves_it(training: bool, offset: bool) -> None:
    norm = Enclosed(nn.BatchNorm2d(WIDTH), offset=offset).train(training)
    certificate = certify(norm, torch.rand(2, WIDTH, 5, 5))
    assert certificate.scale is Status.PROVEN
    assert not offset or certificate.shift is Status.PROVEN


@pytest.mark.parametrize("to", CONVERTED)
def test_a_network_in_training_mode_keeps_its_batch_norms(to: str) -> None:
    net = network()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    twin, report = convert(net, to, images())
    assert "2 x  BatchNorm2d  ->  BatchNorm2d of ratios" in report.table()
    assert report.table().endswith("proven in training mode, too, with the statistics of batches")
    assert report.norms_in_training == ("1", "4")
    assert report.in_training is not None
    assert report.in_training.scale is Status.PROVEN
    assert twin.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    norms = [layer for layer in twin.modules() if isinstance(layer, nn.BatchNorm2d)]
    means = [norm.running_mean.clone() for norm in norms]
    assert torch.equal(norms[1].running_var, net[4].running_var)
    twin(images())
    assert not any(torch.equal(n.running_mean, mean) for n, mean in zip(norms, means, strict=True))


def test_what_was_learnt_stays_better_than_by_folding() -> None:
    net = network()
    net[6].bias.data.zero_()
    example = images()
    kept, _ = convert(net, "scale-equiv", example)
    folded, report = convert(net.eval(), "scale-equiv", example)
    assert "2 x  BatchNorm2d  ->  folded into Conv2d" in report.table()
    assert report.in_training is None
    expected = net(example)
    errors = [(twin.eval()(example) - expected).std() / expected.std() for twin in (kept, folded)]
    assert errors[0] < 0.2 < errors[1]


def test_the_mode_of_each_norm_counts() -> None:
    net = network()
    net[1].eval()
    _, report = convert(net, "norm-equiv-residual", images())
    became = {change.path: change.now for change in report.changes}
    assert (became["1"], became["4"]) == ("folded into Conv2d", "BatchNorm2d of ratios")


def test_instance_norm_with_running_statistics_is_lawful_in_both_modes() -> None:
    norm = nn.InstanceNorm2d(WIDTH, track_running_stats=True)
    net = nn.Sequential(nn.Conv2d(1, WIDTH, 3), norm, nn.ConvTranspose2d(WIDTH, 1, 3))
    twin, report = convert(net, "norm-equiv-residual", images())
    assert report.in_training is not None
    assert report.in_training.norm is Status.PROVEN
    assert any(isinstance(layer, Enclosed) for layer in twin.modules())


def test_a_twin_with_batch_norms_is_saved_and_loaded(tmp_path: Path) -> None:
    twin, report = convert(network(), "norm-equiv-residual", images())
    twin(images())
    save_twin(twin, report, tmp_path / "twin.safetensors")
    again = load_twin(tmp_path / "twin.safetensors", network().eval())
    y = images()
    assert torch.equal(again(y), twin.eval()(y))


def test_training_lowers_the_error() -> None:
    torch.manual_seed(0)
    twin, _ = convert(network(), "norm-equiv-residual", images())
    optimiser = torch.optim.Adam(twin.parameters(), 1e-2)
    losses = []
    for _ in range(40):
        clean = torch.nn.functional.interpolate(torch.rand(8, 1, 3, 3), size=(12, 12))
        loss = (twin(clean + 0.2 * torch.randn_like(clean)) - clean).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
