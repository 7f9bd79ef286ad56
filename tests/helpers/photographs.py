"""What the tests of training share: a folder of small photographs, and runs on it."""

from __future__ import annotations

from pathlib import Path

from skimage import data

from normeq.images import write
from normeq.training import Recipe, load_recipe

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
