from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_networks import tiny
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.denoising.names import denoiser_for
from normeq.errors import UsageError


def test_a_machine_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(function: Any) -> Any:
        raise RuntimeError("no C++ compiler\nlong explanation")

    monkeypatch.setattr(torch, "compile", no_compiler)
    with pytest.raises(UsageError, match=r"does not work here \(no C\+\+ compiler\)"):
        denoiser_for(tiny("unet"), compile=True)


def test_what_is_compiled_is_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def record(function: Any) -> Any:
        compiled.append(function)
        return function

    monkeypatch.setattr(torch, "compile", record)
    normeq.save(tiny("unet"), tmp_path / "net.safetensors", {})
    np.save(tmp_path / "image.npy", np.random.default_rng(0).random((20, 20)))
    options = ["--model", str(tmp_path / "net.safetensors"), "--compile"]
    result = CliRunner().invoke(app, ["denoise", str(tmp_path / "image.npy"), *options])
    assert result.exit_code == 0
    assert any(isinstance(function, torch.nn.Module) for function in compiled)


@pytest.mark.slow
def test_compiled_equals_eager() -> None:
    net = tiny("unet", "norm-equiv")
    tiles = np.random.default_rng(0).random((1, 1, 24, 32))
    eager, fast = denoiser_for(net).run(tiles), denoiser_for(net, compile=True).run(tiles)
    np.testing.assert_allclose(fast, eager, atol=1e-5)
