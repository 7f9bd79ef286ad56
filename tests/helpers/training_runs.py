"""What the tests of training share: a folder of small photographs, and runs on it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from skimage import data

import normeq
from normeq.images import write
from normeq.training import Recipe, checkpoint, load_recipe

Tensors = dict[str, torch.Tensor]

SHORT = [
    "optimization.steps=12",
    "optimization.warmup=3",
    "validation.every=6",
    "checkpoint_every=4",
    "log_every=3",
]


def write_photographs(folder: Path, side: int = 64) -> Path:
    folder.mkdir()
    for name in ("camera", "coins", "moon"):
        write(folder / f"{name}.png", getattr(data, name)()[100 : 100 + side, 100 : 100 + side])
    return folder


def short_recipe(*overrides: str) -> Recipe:
    """Return the tiny recipe, a dozen steps long."""
    return load_recipe("tiny", [*SHORT, *overrides])


def train_command(photographs: Path, out: Path, *more: str) -> list[str]:
    """Return the words of a short run."""
    overrides = [word for field in SHORT for word in ("--set", field)]
    folders = ["--data", str(photographs), "--validation", str(photographs), "--out", str(out)]
    return ["train", "tiny", *folders, *overrides, *more]


def assert_same_run(one: Path, other: Path, tolerance: float = 0.0) -> None:
    """Check that two runs ended with the same weights and state."""
    ours, theirs = (checkpoint.newest(run / "checkpoints") for run in (one, other))
    for value in ("step", "samples"):
        assert ours.values[value] == theirs.values[value]
    assert ours.values["best"] == pytest.approx(theirs.values["best"], abs=1e-6)
    _assert_same_tensors(ours.tensors, theirs.tensors, tolerance)
    for name in ("best.safetensors", "last.safetensors"):
        assert (one / name).exists() == (other / name).exists()
        if (one / name).exists():
            weights = (normeq.load(run / name).state_dict() for run in (one, other))
            _assert_same_tensors(*weights, tolerance)


def _assert_same_tensors(ours: Tensors, theirs: Tensors, tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=tolerance)
