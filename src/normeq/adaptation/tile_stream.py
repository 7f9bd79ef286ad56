"""The tiles of each step: drawn from images of any size, with an input and a target each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from normeq.adaptation.held_out import HeldOut
from normeq.adaptation.noisy_planes import NoisyPlane, NoisyTile
from normeq.adaptation.tile_batch import TileBatch, stacked
from normeq.denoising.ensemble import EVERY_SYMMETRY
from normeq.noise import coloured

Floats = NDArray[np.float64]

#: Side of a tile, and how many make a step.
SIDE = 96
BATCH = 4
# How much noise is added to the input, as a share of what is there.
_STRENGTH = 0.5


@dataclass(frozen=True)
class TuningBatch:
    """Inputs with what the network is told, targets, and which pixels count."""

    given: TileBatch
    target: Tensor
    weight: Tensor


@dataclass(frozen=True)
class _Drawn:
    tile: NoisyTile
    given: Floats
    target: Floats
    counts: Floats
    factor: float


class TileStream:
    """Batches by number: the same number gives the same batch, whatever was drawn before.

    The loss needs no clean image. From a noisy image ``y = x + n``, noise ``z`` of the same law
    gives two images, ``y + a·z`` and ``y - z/a``, whose noise is independent: a network that is
    taught to predict one from the other learns to predict ``x`` (recorrupted-to-recorrupted;
    Pang et al., 2021). Frames of one scene are such pairs by themselves (Noise2Noise; Lehtinen
    et al., 2018).

    Parameters
    ----------
    planes
        The planes; larger ones are drawn from more often.
    held_out
        Cells that must not count.
    seed
        Of the draws.
    level
        The level of the noise, relative to the one the tiles are in units of.
    repeated
        Whether the frames of each image show one scene.
    """

    def __init__(
        self,
        planes: Sequence[NoisyPlane],
        held_out: HeldOut,
        seed: int,
        level: float,
        repeated: bool = False,
    ) -> None:
        self._planes = planes
        self._held_out = held_out
        self._seed = seed
        self._level = level
        self._repeated = repeated
        self._ends = np.cumsum([math.prod(plane.size) for plane in planes])
        self._side = min(SIDE, *(min(plane.size) for plane in planes))

    def batch(self, number: int) -> TuningBatch:
        """Draw the batch of a step."""
        rng = np.random.default_rng([self._seed, 2, number])
        drawn = [self._draw(rng) for _ in range(BATCH)]
        symmetries = [EVERY_SYMMETRY[rng.integers(len(EVERY_SYMMETRY))] for _ in drawn]
        given = TileBatch.of(
            [each.tile for each in drawn],
            [each.given for each in drawn],
            [each.factor for each in drawn],
            symmetries,
        )
        turned = list(zip(symmetries, drawn, strict=True))
        target = stacked([symmetry(each.target) for symmetry, each in turned])
        return TuningBatch(given, target, stacked([turn(each.counts) for turn, each in turned]))

    def _draw(self, rng: np.random.Generator) -> _Drawn:
        number = int(np.searchsorted(self._ends, rng.integers(self._ends[-1]), side="right"))
        plane = self._planes[number]
        rows, columns = (
            slice(start, start + self._side)
            for start in (int(rng.integers(extent - self._side + 1)) for extent in plane.size)
        )
        tile = plane.tile(rows, columns)
        known = tile.known & self._held_out.trains(number, rows, columns)
        counts = known.astype(np.float64)
        if self._repeated:
            target = plane.repetition(tile, rows, columns, rng)
            counts = counts * np.isfinite(target)
            return _Drawn(tile, tile.values, np.nan_to_num(target), counts, 1.0)
        noise = coloured(rng.standard_normal(tile.values.shape), plane.correlation)
        noise *= self._level * tile.sigma
        return _Drawn(
            tile,
            tile.values + _STRENGTH * noise,
            tile.values - noise / _STRENGTH,
            counts,
            math.hypot(1.0, _STRENGTH),
        )
