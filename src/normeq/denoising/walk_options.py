"""How the caller wants an image denoised."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from normeq.errors import UsageError
from normeq.images.bayer import BAYER, Bayer

NanPolicy = Literal["raise", "keep"]


@dataclass(frozen=True)
class WalkOptions:
    """How an image is denoised.

    Attributes
    ----------
    nan
        Whether a pixel without a value is an error, or stays as it is.
    dtype
        Of the result; that of the image if None.
    tile
        Side of the tiles in pixels; None lets memory decide.
    value_range
        What is 0 and 1 to a network that is not equivariant, in the image's units.
    bayer
        The pattern of a camera's raw image; None if it is not known to be one.
    cancel
        Set by another thread, it ends the walk with `normeq.errors.Cancelled`.
    """

    nan: NanPolicy = "raise"
    dtype: np.dtype[Any] | None = None
    tile: int | None = None
    value_range: tuple[float, float] | None = None
    bayer: Bayer | None = None
    cancel: threading.Event | None = None

    def __post_init__(self) -> None:
        if self.nan not in get_args(NanPolicy):
            raise UsageError(f"nan is {self.nan!r}, but must be 'raise' or 'keep'.")
        if self.tile is not None and self.tile < 1:
            raise UsageError(f"tile is {self.tile}, but a tile has at least 1 pixel to a side.")
        if self.bayer is not None and self.bayer not in BAYER:
            raise UsageError(f"bayer is {self.bayer!r}: use one of {', '.join(BAYER)}.")
