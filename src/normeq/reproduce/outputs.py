"""What reproductions share: their scales, and files written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from normeq.errors import FileError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Scale", "make_folder", "save_figure", "write_text"]


class Scale(StrEnum):
    """Size of an experiment: minutes on a laptop, or as large as in the paper."""

    SMALL = "small"
    PAPER = "paper"


def make_folder(path: Path) -> None:
    """Make sure that a folder for results exists, before the time to compute them is spent."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder '{path}' cannot be made: {error.strerror}.") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file."""
    _write(path, lambda file: file.write_text(text, encoding="utf-8"))


def save_figure(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a figure and write it as PNG."""
    try:
        figure = draw()
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'normeq[train]'.") from error
    _write(path, lambda file: figure.savefig(file, dpi=120, format="png"))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(unfinished)
        unfinished.replace(path)
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
