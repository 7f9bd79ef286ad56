"""A teacher for a network: images that are closer to the truth than its own output.

BM3D averages similar patches. Where structures repeat it is better than a network that has never
seen them, elsewhere it is worse. Stein's estimate tells how far to move towards it, place by place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import nn

from normeq import classical
from normeq.adaptation.noisy_planes import NoisyPlane, NoisyTile
from normeq.adaptation.plane_grid import Cell, PlaneGrid
from normeq.adaptation.risk import STEP, probe
from normeq.adaptation.tile_batch import TileBatch, output_of

Floats = NDArray[np.float64]

# Side of the squares that the teacher denoises, and how many it denoises at most.
_SIDE = 128
_MOST = 16
# Sums are taken over two boxes of this side, one after the other.
_BOX = 31


@dataclass(frozen=True)
class Lesson:
    """A square of a plane, and what the teacher makes of it in the units of the tile."""

    cell: Cell
    tile: NoisyTile
    target: Floats


class Teacher:
    """Lessons by number, each computed when it is first asked for.

    The lessons of ``λ·y + μ`` are those of ``y``.

    Parameters
    ----------
    net
        The network that is taught, before it has learned anything.
    planes
        The noisy planes; the squares are drawn from all of them.
    seed
        Of the squares and the probes.
    level
        The level of the noise, relative to the one the tiles are in units of.
    """

    def __init__(
        self, net: nn.Module, planes: Sequence[NoisyPlane], seed: int, level: float
    ) -> None:
        self._net = net
        self._planes = planes
        self._seed = seed
        self._level = level
        grid = PlaneGrid(planes, min(_SIDE, *(min(plane.size) for plane in planes)))
        rng = np.random.default_rng([seed, 3])
        self._cells = grid.sample(min(_MOST, len(grid)), rng)
        self._lessons: dict[int, Lesson] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def lesson(self, number: int) -> Lesson:
        """Return a lesson."""
        if number not in self._lessons:
            cell = self._cells[number]
            tile = self._planes[cell.plane].tile(cell.rows, cell.columns)
            rng = np.random.default_rng([self._seed, 4, number])
            self._lessons[number] = Lesson(cell, tile, self._target(tile, rng))
        return self._lessons[number]

    def _target(self, tile: NoisyTile, rng: np.random.Generator) -> Floats:
        """Return the output of the network, moved towards BM3D where that lowers the error.

        For ``own + w·away`` Stein's estimate of the squared error is least at
        ``w = ((y - own)·away - div away) / |away|²``, in units of the noise.
        """
        own, away = self._answers(tile, tile.values)
        drawn = probe(tile.values.shape, rng)
        _, moved = self._answers(tile, tile.values + STEP * tile.sigma * drawn)
        slope = self._level**2 * tile.sigma * drawn * (moved - away) / STEP
        gained = _nearby((tile.values - own) * away - slope)
        distance = _nearby(away**2)
        share = np.divide(gained, distance, out=np.zeros_like(gained), where=distance > 0)
        target: Floats = own + np.clip(share, 0.0, 1.0) * away
        return target

    @torch.inference_mode()
    def _answers(self, tile: NoisyTile, values: Floats) -> tuple[Floats, Floats]:
        """Return the output of the network, and how far the result of BM3D is from it."""
        own: Floats = output_of(self._net, TileBatch.of([tile], [values])).double().cpu().numpy()[0]
        # Without its mean, because BM3D would not keep it.
        mean = values.mean()
        similar = classical.bm3d((values - mean).astype(np.float32), self._level) + mean
        return own, similar - own


def _nearby(terms: Floats) -> Floats:
    """Return weighted means around every pixel."""
    for _ in range(2):
        terms = ndimage.uniform_filter(terms, (1, _BOX, _BOX), mode="mirror")
    return terms
