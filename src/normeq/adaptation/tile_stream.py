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
from normeq.adaptation.teacher import Teacher
from normeq.adaptation.tile_batch import TileBatch, stacked
from normeq.denoising.ensemble import EVERY_SYMMETRY

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

    No clean image is needed. Lessons are images of the teacher with new noise, which the network
    learns to remove. The other batches do not depend on how good the teacher is: from a noisy
    image ``y = x + n``, noise ``z`` of the same law gives two images, ``y + a·z`` and ``y - z/a``,
    whose noise is independent. A network that predicts one from the other learns to predict ``x``
    (recorrupted-to-recorrupted; Pang et al., 2021). Frames of one scene are such pairs by
    themselves (Noise2Noise; Lehtinen et al., 2018).

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
    teacher
        Gives the lessons; None if the frames of each image show one scene.
    """

    def __init__(
        self,
        planes: Sequence[NoisyPlane],
        held_out: HeldOut,
        seed: int,
        level: float,
        teacher: Teacher | None,
    ) -> None:
        self._planes = planes
        self._held_out = held_out
        self._seed = seed
        self._level = level
        self._teacher = teacher
        self._ends = np.cumsum([math.prod(plane.size) for plane in planes])
        self._side = min(SIDE, *(min(plane.size) for plane in planes))

    @property
    def has_lessons(self) -> bool:
        """Whether there is a teacher."""
        return self._teacher is not None

    def batch(self, number: int, is_lesson: bool) -> TuningBatch:
        """Draw the batch of a step."""
        rng = np.random.default_rng([self._seed, 2, number])
        draw = self._taught if is_lesson else self._unseen
        drawn = [draw(rng) for _ in range(BATCH)]
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

    def _taught(self, rng: np.random.Generator) -> _Drawn:
        """Draw a tile of what the teacher made, and add noise."""
        assert self._teacher is not None
        lesson = self._teacher.lesson(int(rng.integers(len(self._teacher))))
        rows, columns = self._rectangle(lesson.target.shape[1:], rng)
        tile, target = lesson.tile.cut(rows, columns), lesson.target[:, rows, columns]
        free = self._held_out.trains(
            lesson.cell.plane,
            _part(lesson.cell.rows, rows),
            _part(lesson.cell.columns, columns),
        )
        given = target + self._noise(tile, rng)
        return _Drawn(tile, given, target, (tile.known & free).astype(np.float64), 1.0)

    def _unseen(self, rng: np.random.Generator) -> _Drawn:
        """Draw a tile of a plane, with a target whose noise is independent of it."""
        number = int(np.searchsorted(self._ends, rng.integers(self._ends[-1]), side="right"))
        plane = self._planes[number]
        rows, columns = self._rectangle(plane.size, rng)
        tile = plane.tile(rows, columns)
        known = tile.known & self._held_out.trains(number, rows, columns)
        counts = known.astype(np.float64)
        if self._teacher is None:
            target = plane.repetition(tile, rows, columns, rng)
            counts = counts * np.isfinite(target)
            return _Drawn(tile, tile.values, np.nan_to_num(target), counts, 1.0)
        noise = self._noise(tile, rng)
        return _Drawn(
            tile,
            tile.values + _STRENGTH * noise,
            tile.values - noise / _STRENGTH,
            counts,
            math.hypot(1.0, _STRENGTH),
        )

    def _rectangle(self, size: Sequence[int], rng: np.random.Generator) -> tuple[slice, slice]:
        """Draw where a tile lies."""
        row, column = (int(rng.integers(extent - self._side + 1)) for extent in size)
        return slice(row, row + self._side), slice(column, column + self._side)

    def _noise(self, tile: NoisyTile, rng: np.random.Generator) -> Floats:
        """Draw noise of the law of a tile: white, since other noise needs repeated frames."""
        noise: Floats = rng.standard_normal(tile.values.shape) * (self._level * tile.sigma)
        return noise


def _part(outer: slice, inner: slice) -> slice:
    """Return a part of a range, counted from where the range is counted from."""
    return slice(outer.start + inner.start, outer.start + inner.stop)
