"""Denoisers that take their time, for runs that are disturbed; workers import them by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


def halved(plane: NDArray[Any]) -> NDArray[Any]:
    """Return half of the values, at once."""
    return plane / 2


def slowly_halved(plane: NDArray[Any]) -> NDArray[Any]:
    """Return half of the values, after a moment in which a worker can be killed."""
    time.sleep(0.2)
    return plane / 2


def recorded(log: Path, plane: NDArray[Any]) -> NDArray[Any]:
    """Do the same, and add a line to a file."""
    with log.open("a") as file:
        file.write("called\n")
    return slowly_halved(plane)


def slow() -> Callable[..., Any]:
    """Make a slow denoiser, as ``--model helpers.slow_denoisers:slow`` does."""
    return slowly_halved
