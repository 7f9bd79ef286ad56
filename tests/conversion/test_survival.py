"""Twins outlive torch.save, torch.export and ONNX."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.foreign_networks import ResNet
from torch import nn
from torch.nn import functional as F

from normeq.conversion import convert
from normeq.conversion.converter import TARGETS


def network() -> nn.Module:
    """Return a network with a norm, which becomes one of ratios, and functions in its forward."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU(),
                         nn.Conv2d(4, 1, 3, padding=1), ResNet()).eval()  # fmt: skip


@pytest.fixture(scope="module", params=TARGETS)
def twin(request: pytest.FixtureRequest) -> nn.Module:
    return convert(network(), request.param, image(0))[0].eval()


def image(seed: int) -> torch.Tensor:
    return torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_torch_save(twin: nn.Module) -> None:
    expected = twin(image(1))
    buffer = io.BytesIO()
    torch.save(twin.state_dict(), buffer)
    for value in twin.parameters():
        value.data.add_(1)
    buffer.seek(0)
    twin.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(twin(image(1)), expected)
    buffer = io.BytesIO()
    torch.save(twin, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    assert torch.equal(again(image(1)), expected)
    assert again.state_dict().keys() == twin.state_dict().keys()


class Pooling(nn.Module):
    """Calls a function that pickle does not find, and has a part that its forward does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.head, self.out = nn.Linear(2, 2), nn.Conv2d(4, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return x + F.interpolate(self.out(pooled), scale_factor=2)


def test_torch_save_keeps_unused_parts_and_modes() -> None:
    net = Pooling().train()
    net.norm.eval()
    twin, _ = convert(net, "norm-equiv", image(0))
    buffer = io.BytesIO()
    torch.save(twin, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    assert torch.equal(again(image(1)), twin(image(1)))
    assert again.state_dict().keys() == twin.state_dict().keys()
    assert [m.training for m in again.modules()] == [m.training for m in twin.modules()]


@torch.no_grad()
def test_torch_export(twin: nn.Module) -> None:
    exported = torch.export.export(twin, (image(0),), strict=False).module()
    torch.testing.assert_close(exported(image(1)), twin(image(1)))


@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
def test_onnx(twin: nn.Module, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "twin.onnx"
    torch.onnx.export(twin, (image(0),), path, dynamo=True, verbose=False)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (name,) = (given.name for given in session.get_inputs())
    for y in (image(1), 7 * image(1) + 3):
        (out,) = session.run(None, {name: y.numpy()})
        np.testing.assert_allclose(out, twin(y).numpy(), rtol=1e-3, atol=1e-4)
