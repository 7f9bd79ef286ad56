"""What the tests of the formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from normeq.images import Band, ImageFile, open_image
from normeq.images.gzipped import pack
from normeq.images.source import Pixels


def bands_of(
    source: ImageFile, rows: int, change: Callable[[Pixels], Pixels] = lambda pixels: pixels
) -> Iterator[Band]:
    for frame in range(source.frames):
        for start in range(0, source.height, rows):
            stop = min(start + rows, source.height)
            yield Band(frame, start, change(source.read(frame, start, stop)))


def copy(path: Path, target: Path, rows: int = 7, axes: str | None = None) -> None:
    """Pass an image through its format, its pixels turned upside down in value."""
    with open_image(path, axes) as source:
        for part in source.parts:
            part.write(target, bands_of(part, rows, inverted))
        source.complete(target)
        if target.suffix == ".gz":
            pack(target)


def inverted(pixels: Pixels) -> Pixels:
    """Return pixels that differ from the input's, in the same dtype, and back again."""
    if pixels.dtype.kind == "f":
        return -pixels
    return np.invert(pixels)


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Pixels:
    values = np.random.default_rng(seed).integers(0, 200, shape)
    return values.astype(dtype)
