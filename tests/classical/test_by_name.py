"""Classical methods are reachable wherever a model's name is."""

from __future__ import annotations

import json
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from skimage.data import camera
from typer.testing import CliRunner

from normeq.classical import METHODS
from normeq.cli import app
from normeq.denoising.names import resolve


@pytest.mark.parametrize("name", METHODS)
def test_names_resolve(name: str) -> None:
    assert resolve(name) is METHODS[name]


@pytest.mark.parametrize("name", ["median_filter", "dct"])
def test_blind_or_not_they_can_be_evaluated(name: str, tmp_path: Path) -> None:
    imageio.imwrite(tmp_path / "clean.png", camera()[40:104, 200:264])
    result = CliRunner().invoke(
        app, ["evaluate", name, "--data", str(tmp_path), "--sigma", "50", "--json"]
    )
    assert result.exit_code == 0, result.output
    [mean] = json.loads(result.stdout)["means"]
    assert mean["psnr"] > 17


@pytest.mark.parametrize(("name", "options"), [("median_filter", []), ("dct", ["--sigma", "40"])])
def test_files_can_be_denoised(name: str, options: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noisy = 1000 + 40 * rng.standard_normal((30, 35)).astype(np.float32)
    np.save(tmp_path / "noisy.npy", noisy)
    result = CliRunner().invoke(
        app, ["denoise", str(tmp_path / "noisy.npy"), "--model", name, *options]
    )
    assert result.exit_code == 0, result.output
    clean = np.load(tmp_path / "noisy.denoised.npy")
    assert clean.dtype == np.float32
    noise = () if METHODS[name].blind else (40.0,)
    np.testing.assert_allclose(clean, METHODS[name](noisy.astype(float), *noise), rtol=1e-6)
