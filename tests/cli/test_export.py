from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from normeq.cli import app
from normeq.conversion import load_twin

pytest.importorskip("onnxscript", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

SOURCE = """
from torch import nn
def network():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
"""


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_export_then_denoise_and_check(weights: Path, tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    assert f"{file}: 0.0 MB" in run("export", weights, "-o", file)
    np.save(tmp_path / "noisy.npy", 1000 + np.random.default_rng(0).normal(size=(40, 33)))
    outputs = []
    for model in (weights, file):
        run("denoise", tmp_path / "noisy.npy", "--model", model, "-o", tmp_path / "out.npy",
            "--noise", "gaussian", "--overwrite")  # fmt: skip
        outputs.append(np.load(tmp_path / "out.npy"))
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-4)
    assert "net.onnx is normalization-equivariant." in run("check", file)
    about = run("info", file)
    assert "inputs           image\n" in about
    assert "receptive field" in about


def test_a_twin_and_its_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"exported_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    factory = f"{module}:network"
    run("convert", factory, "--to", "norm-equiv-residual", "-o", "twin.safetensors")
    run("export", factory, "--twin", "twin.safetensors", "-o", "twin.onnx")
    run("export", factory, "-o", "net.pt2", "--to", "torch-export")
    assert "twin.onnx is normalization-equivariant." in run("check", "twin.onnx")
    from normeq.denoising.names import resolve

    y, net = torch.rand(1, 1, 9, 14), resolve(factory)
    twin = load_twin("twin.safetensors", net)  # type: ignore[arg-type]
    torch.testing.assert_close(resolve("twin.onnx")(y), twin(y).detach(), atol=1e-5, rtol=0)
    assert torch.export.load("net.pt2").module()(y).shape == y.shape
