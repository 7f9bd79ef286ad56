"""What patch-based methods share: block matching, gathering of patch groups, aggregation.

A patch is named by its corner, the index of its top left pixel in the flattened plane.
Matching depends on differences of pixels alone, so that it ignores offsets, and on their
order, so that it ignores gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from normeq.errors import InputError

__all__ = ["Aggregate", "Matches", "gather", "match"]

# Distances held at a time: bands of reference rows are sized to stay in the processor's cache.
_BAND_DISTANCES = 1 << 20


class Matches(NamedTuple):
    """The patches most similar to each of n reference patches, the reference first.

    Attributes
    ----------
    corners
        Corners, of shape ``(n, count)``.
    distances
        Mean squared difference from the reference, of shape ``(n, count)``, ascending.
    """

    corners: Tensor
    distances: Tensor


def match(guide: Tensor, size: int, *, step: int, radius: int, count: int) -> Iterator[Matches]:
    """Find similar patches for reference patches on a grid, a band of rows at a time.

    Parameters
    ----------
    guide
        The plane in which patches are compared.
    size
        Side of the square patches.
    step
        Spacing of the grid; the last row and column of patches belong to it in any case.
    radius
        Largest shift searched along each axis.
    count
        Patches in a group; fewer where the window of a corner of the image holds fewer.

    Examples
    --------
    >>> import torch
    >>> [found] = match(torch.arange(4.0).expand(4, 4), 2, step=2, radius=2, count=3)
    >>> found.corners[0].tolist(), found.distances[0].tolist()
    ([0, 4, 8], [0.0, 0.0, 0.0])
    """
    height, width = guide.shape
    if min(height, width) < size:
        raise InputError(
            f"the image measures {height} x {width} pixels, less than the method's patches of "
            f"{size} x {size}: pass a smaller patch size or a larger image."
        )
    rows, columns = _grid(height - size, step), _grid(width - size, step)
    smallest_window = math.prod(min(radius, extent - size) + 1 for extent in guide.shape)
    count = min(count, smallest_window)
    shifts = 2 * radius + 1
    # Outside the image everything is infinitely far.
    surrounded = torch.nn.functional.pad(guide, (radius,) * 4, value=math.inf)
    rows_in_band = max(1, _BAND_DISTANCES // (len(columns) * shifts**2))
    for band in rows.split(rows_in_band):
        distances = _band_distances(guide, surrounded, band, columns, size, radius)
        # A reference outranks its exact copies, so that every pixel is estimated at least once.
        distances[:, shifts**2 // 2] = -1.0
        nearest, index = distances.topk(count, largest=False, sorted=True)
        down, right = index // shifts - radius, index % shifts - radius
        references = (band[:, None] * width + columns).reshape(-1, 1)
        yield Matches(references + down * width + right, nearest.clamp_min_(0.0) / size**2)


def gather(plane: Tensor, corners: Tensor, size: int) -> Tensor:
    """Return the patches at some corners, flattened: shape ``(*corners.shape, size²)``."""
    return plane.take(corners[..., None] + _offsets(plane, size))


class Aggregate:
    """Weighted mean of overlapping patches, pixel by pixel.

    Parameters
    ----------
    plane
        An image of the shape and type to be estimated.
    size
        Side of the square patches.
    """

    def __init__(self, plane: Tensor, size: int) -> None:
        self._offsets = _offsets(plane, size)
        self._shape = plane.shape
        self._sum = plane.new_zeros(plane.numel())
        self._weight = plane.new_zeros(plane.numel())

    def add(self, corners: Tensor, patches: Tensor, weights: Tensor) -> None:
        """Add patches of shape ``(*corners.shape, size²)``; weights broadcast against them."""
        index = (corners[..., None] + self._offsets).flatten()
        self._sum.index_add_(0, index, (patches * weights).flatten())
        self._weight.index_add_(0, index, weights.expand_as(patches).flatten())

    def mean(self) -> Tensor:
        """Return the plane estimated so far."""
        return (self._sum / self._weight).reshape(self._shape)


def _grid(last: int, step: int) -> Tensor:
    return torch.tensor(sorted({*range(0, last + 1, step), last}))


def _offsets(plane: Tensor, size: int) -> Tensor:
    along = torch.arange(size)
    return (along[:, None] * plane.shape[1] + along).flatten()


def _band_distances(
    guide: Tensor, surrounded: Tensor, rows: Tensor, columns: Tensor, size: int, radius: int
) -> Tensor:
    """Return summed squared differences: a row for each reference, a column for each shift."""
    shifts = 2 * radius + 1
    top, bottom = int(rows[0]), int(rows[-1]) + size
    base = guide[top:bottom, None, :]
    distances = guide.new_empty(len(rows), len(columns), shifts, shifts)
    for down in range(shifts):
        window = surrounded[top + down : bottom + down].unfold(1, guide.shape[1], 1)
        squared = (window - base).square_()
        by_row = _sliding_sum(squared, size, 0)[rows - top]
        by_patch = _sliding_sum(by_row, size, 2)[:, :, columns]
        distances[:, :, down] = by_patch.transpose(1, 2)
    return distances.reshape(len(rows) * len(columns), shifts**2)


def _sliding_sum(values: Tensor, size: int, axis: int) -> Tensor:
    """Sum ``size`` neighbours along an axis by doubling: additions alone, so infinity stays."""
    length = values.shape[axis] - size + 1
    total: Tensor | None = None
    power, width, start = values, 1, 0
    while width <= size:
        if size & width:
            part = power.narrow(axis, start, length)
            total = part if total is None else total + part
            start += width
        reach = power.shape[axis] - width
        if 2 * width <= size:
            power = power.narrow(axis, 0, reach) + power.narrow(axis, width, reach)
        width *= 2
    assert total is not None
    return total
