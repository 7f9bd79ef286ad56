"""What the values of pixels stand for, as the tags of a TIFF page say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_WHITE_IS_ZERO, _BLACK_IS_ZERO, RGB, PALETTE, CMYK, _YCBCR, _LINEAR_RAW = 0, 1, 2, 3, 5, 6, 34892
COLORMAP, _NODATA = 320, 42113
# Compressions that give back the very pixels; the others turn YCbCr into RGB.
LOSSLESS = {1, 5, 8, 32773, 32946, 34925, 50000}


def is_intensity(key: Any) -> bool:
    """Whether a mean of two pixels of a page is a pixel between them."""
    if key.photometric == PALETTE:
        colours = np.asarray(key.tags[COLORMAP].value).reshape(3, -1).astype(np.int64)
        steps = np.diff(colours)
        return colours.shape[1] in (2**8, 2**16) and bool(
            ((steps >= 0).all(1) | (steps <= 0).all(1)).all()
        )
    if key.photometric == _YCBCR:
        return key.compression not in LOSSLESS
    return key.photometric in (_WHITE_IS_ZERO, _BLACK_IS_ZERO, RGB, CMYK, _LINEAR_RAW)


def is_gray(key: Any) -> bool:
    """Whether each sample of a page is an intensity of its own."""
    return key.photometric in (_WHITE_IS_ZERO, _BLACK_IS_ZERO)


def nodata(key: Any, dtype: np.dtype[Any]) -> float | None:
    """Return the value that GDAL's tag marks as missing, if pixels can have it."""
    tag = key.tags.get(_NODATA)
    try:
        value = math.nan if tag is None else float(str(tag.value).strip(" \0"))
    except ValueError:
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            value = float(dtype.type(value))  # as a pixel holds it
        return value if math.isfinite(value) else None
    limits = np.iinfo(dtype)
    return int(value) if value.is_integer() and limits.min <= value <= limits.max else None
