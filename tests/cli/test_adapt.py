from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import normeq
from normeq import images
from normeq.cli import app

NOISY = np.add.outer(np.arange(128.0), np.arange(128.0)) + np.random.default_rng(0).normal(
    0, 9, (128, 128)
)

NOISE = ("--gain", "0", "--read-noise", "9")


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path, Path]:
    net = normeq.create("unet", "norm-equiv-residual", blind=True, widths=(4, 4), blocks=1)
    normeq.save(net, tmp_path / "net.safetensors", {})
    images.write(tmp_path / "noisy.tif", NOISY.astype(np.float32))
    return tmp_path / "noisy.tif", tmp_path / "mine.safetensors", tmp_path / "net.safetensors"


def call(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_weights_are_written_and_serve_as_a_model(paths):
    noisy, mine, net = paths
    done = call("adapt", noisy, "-o", mine, "--model", net, "--steps", "8", *NOISE)
    assert done.exit_code == 0, done.output
    assert "mine.safetensors: adapted in 8 steps" in " ".join(done.output.split())
    assert "step 8: estimated RMSE" in done.output
    assert normeq.load(mine).card["adapted"]["images"] == ["noisy.tif"]
    assert sorted(path.name for path in noisy.parent.iterdir()) == sorted(
        path.name for path in paths
    )
    assert call("denoise", noisy, "--model", mine).exit_code == 0
    again = call("adapt", noisy, "-o", mine, "--model", net)
    assert again.exit_code == 2
    assert "replace it with --overwrite" in again.output


def test_denoise_adapts_and_denoises_in_one_go(paths, monkeypatch):
    from normeq.adaptation import tuning_options

    noisy, _, net = paths
    monkeypatch.setattr(tuning_options, "STEPS", 8)
    done = call("denoise", noisy, "--adapt", "--model", net, *NOISE)
    assert done.exit_code == 0, done.output
    assert "adapted in" in done.output
    plain = normeq.denoise(images.read(noisy), model=str(net))
    assert np.abs(images.read(noisy.with_name("noisy.denoised.tif")) - plain).max() > 0


def test_what_cannot_work_is_a_sentence(paths):
    noisy, mine, net = paths
    no_weights = call("adapt", noisy, "-o", "mine.pth", "--model", net)
    assert no_weights.exit_code == 2
    assert "give it the extension .safetensors" in no_weights.output
    nothing = call("adapt", noisy, "-o", mine, "--model", net, "--resume")
    assert nothing.exit_code == 1
    assert "no checkpoint to resume from" in nothing.output
    assert not mine.exists()
