"""What reproductions share: their scales, and files written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from normeq.atomic import replacing, writing
from normeq.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Scale", "make_folder", "save_figure", "write_text"]


class Scale(StrEnum):
    """Size of an experiment: minutes on a laptop, or as large as in the paper."""

    SMALL = "small"
    PAPER = "paper"


def make_folder(path: Path) -> None:
    """Make sure that a folder for results exists, before the time to compute them is spent."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def save_figure(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a figure and write it as PNG."""
    try:
        figure = draw()
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'normeq[train]'.") from error
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
