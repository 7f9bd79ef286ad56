"""Tiles on their way to a denoiser, and which of them run together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from normeq.denoising.plane import Plane
from normeq.denoising.tiles import Tile
from normeq.denoising.units import Floats, Mask
from normeq.images.source import Pixels


class TileJob(NamedTuple):
    """A tile of a plane: what the denoiser gets, and what it must not touch."""

    plane: Plane
    tile: Tile
    values: Floats
    stored: Pixels
    missing: Mask
    #: Noise level, or a map of it ``(1, H, W)``, in the denoiser's units; None if it is not told.
    sigma: Floats | None

    @property
    def crop(self) -> tuple[slice, slice, slice]:
        """Where the result lies in what the denoiser gets."""
        return (slice(None), *self.tile.crop)


def batches(jobs: Iterable[TileJob], size: int) -> Iterator[list[TileJob]]:
    """Group consecutive jobs whose tiles have one shape, at most `size` of them."""
    group: list[TileJob] = []
    for job in jobs:
        if group and (len(group) == size or job.values.shape != group[0].values.shape):
            yield group
            group = []
        group.append(job)
    if group:
        yield group
