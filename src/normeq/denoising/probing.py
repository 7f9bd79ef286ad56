"""What a denoiser does to some parts of an image, and to small noise there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.bands import Frames, Walk
from normeq.denoising.error_bars import ErrorBars
from normeq.denoising.image_parts import Place
from normeq.denoising.tile_jobs import TileJob
from normeq.noise.sampling import Region, sampled_regions

Floats = NDArray[np.float64]


class ProbedRegion(NamedTuple):
    """A rectangle of one plane, in stored units, with NaN where a pixel has no value.

    Attributes
    ----------
    place, region
        Which plane, and which part of it.
    noisy, denoised
        The image before and after.
    sigma
        Standard deviation of the noise of each pixel.
    probes
        Fields of unit variance that have the correlation of the noise, ``(probes, H, W)``.
    responses
        How the result moves under noise: ``A·(σ·probe)``, of the same shape.
    """

    place: Place
    region: Region
    noisy: Floats
    denoised: Floats
    sigma: Floats
    probes: Floats
    responses: Floats


def probed_regions(walk: Walk, bars: ErrorBars) -> Iterator[ProbedRegion]:
    """Denoise and probe the regions that stand for an image; its shape alone decides which.

    Parameters
    ----------
    walk
        How the image is denoised.
    bars
        What noise it has, and how many probes are wanted.
    """
    source = walk.source
    for region in sampled_regions(source.frames, source.height, source.width):
        frames = Frames(walk, [region.frame])
        arrays: dict[Place, list[Floats]] = {}
        shape = (
            region.rows.stop - region.rows.start,
            region.columns.stop - region.columns.start,
        )
        for group in walk.groups:
            for sample in group:
                empty = [np.full(shape, np.nan) for _ in range(3)]
                empty += [np.zeros((bars.probes, *shape)) for _ in range(2)]
                arrays[region.frame, sample] = empty
        for tiles in walk.tile_jobs(frames.planes, region.rows, region.columns, frames.read):
            _probe_tiles(walk, bars, tiles, region, arrays)
        for place, found in arrays.items():
            yield ProbedRegion(place, region, *found)


def _probe_tiles(
    walk: Walk,
    bars: ErrorBars,
    tiles: list[TileJob],
    region: Region,
    arrays: dict[Place, list[Floats]],
) -> None:
    """Denoise and probe some tiles, and place what is found in the arrays of their planes."""
    denoised = list(walk.restored(tiles, np.stack([tile.values for tile in tiles])))
    for tile, result in zip(tiles, denoised, strict=True):
        missing = tile.missing[tile.crop]
        stored = np.where(missing, np.nan, tile.stored[tile.crop].astype(np.float64))
        for channel, sample in enumerate(tile.plane.samples):
            inside = _inside(tile, region)
            noisy, clean, sigma, *_ = arrays[tile.plane.frame, sample]
            noise = bars.noise[tile.plane.frame, sample]
            noisy[inside] = stored[channel]
            clean[inside] = np.where(missing[channel], np.nan, result[channel])
            sigma[inside] = noise.sigma(tile.plane.frame, *tile.tile.kept, clean[inside])
    for number, (fields, responses) in enumerate(bars.probed(walk, tiles, denoised)):
        for tile, field, response in zip(tiles, fields, responses, strict=True):
            for channel, sample in enumerate(tile.plane.samples):
                *_, drawn, moved = arrays[tile.plane.frame, sample]
                place = (number, *_inside(tile, region))
                drawn[place], moved[place] = field[channel], response[channel]


def _inside(tile: TileJob, region: Region) -> tuple[slice, slice]:
    """Return where a tile lies in a region."""
    rows, columns = tile.tile.kept
    top, left = region.rows.start, region.columns.start
    return (
        slice(rows.start - top, rows.stop - top),
        slice(columns.start - left, columns.stop - left),
    )
