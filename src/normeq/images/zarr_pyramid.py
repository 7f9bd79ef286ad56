"""The coarser levels of an OME-Zarr image, built again from the finest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from normeq.errors import InputError
from normeq.images.source import Pixels

Block = tuple[slice, ...]


def shrink_factors(fine: Sequence[int], coarse: Sequence[int]) -> list[int]:
    """Return by how much each axis shrinks from one level of a pyramid to the next."""
    return [max(1, round(a / b)) for a, b in zip(fine, coarse, strict=True)]


def check_pyramid(path: Path, shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse a pyramid whose levels are not averages over whole blocks: it could not be rebuilt."""
    for fine, coarse in pairwise(shapes):
        for size, smaller, factor in zip(fine, coarse, shrink_factors(fine, coarse), strict=True):
            if smaller not in (size // factor, -(-size // factor)):
                raise InputError(
                    f"{path}: its pyramid goes from {size} pixels to {smaller}, not by a whole "
                    "factor, and cannot be rebuilt; denoise its first level as an array."
                )


def blocks_of(level: Path) -> Iterator[Block]:
    """Cut a level of a pyramid into blocks that are stored as one file each."""
    array: Any = zarr.open_array(level, mode="r")
    spans = [
        [slice(start, min(start + step, size)) for start in range(0, size, step)]
        for size, step in zip(array.shape, array.shards or array.chunks, strict=True)
    ]
    return product(*spans)


def downsample(fine: Path, coarse: Path, blocks: Iterable[Block] | None = None) -> None:
    """Average one level of the pyramid into some blocks of the next, or all of them."""
    source = zarr.open_array(fine, mode="r")
    output: Any = zarr.open_array(coarse, mode="r+")
    factors = shrink_factors(source.shape, output.shape)
    for block in blocks_of(coarse) if blocks is None else blocks:
        output[block] = block_means(source, block, factors)


def block_means(source: Any, block: Sequence[slice], factors: Sequence[int]) -> Pixels:
    """Average the pixels of `source` that fall into each pixel of a block of the next level."""
    wanted = [
        slice(part.start * factor, min(part.stop * factor, size))
        for part, factor, size in zip(block, factors, source.shape, strict=True)
    ]
    pixels = np.asarray(source[tuple(wanted)], dtype=np.float64)
    missing = [
        (0, (part.stop - part.start) * factor - size)
        for part, factor, size in zip(block, factors, pixels.shape, strict=True)
    ]
    if any(after for _, after in missing):
        pixels = np.pad(pixels, missing, mode="edge")
    split = [
        number
        for part, factor in zip(block, factors, strict=True)
        for number in (part.stop - part.start, factor)
    ]
    means: Pixels = pixels.reshape(split).mean(axis=tuple(range(1, len(split), 2)))
    dtype = np.dtype(source.dtype)
    return (np.rint(means) if dtype.kind in "iu" else means).astype(dtype)
