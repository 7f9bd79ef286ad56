"""Planes divided into squares, some of which are drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from normeq.adaptation.noisy_planes import NoisyPlane


@dataclass(frozen=True)
class Cell:
    """A square of a plane."""

    plane: int
    rows: slice
    columns: slice


class PlaneGrid:
    """The squares of one side into which planes are divided; what remains at the edges is left.

    Parameters
    ----------
    planes
        The planes.
    side
        Of the squares.
    """

    def __init__(self, planes: Sequence[NoisyPlane], side: int) -> None:
        self._side = side
        self._across = [plane.size[1] // side for plane in planes]
        self._counts = np.array(
            [(plane.size[0] // side) * (plane.size[1] // side) for plane in planes]
        )

    def __len__(self) -> int:
        return int(self._counts.sum())

    def sample(self, count: int, rng: np.random.Generator) -> list[Cell]:
        """Draw different squares, in the order in which they lie."""
        chosen = rng.choice(len(self), count, replace=False, shuffle=False)
        return [self._cell(number) for number in sorted(int(index) for index in chosen)]

    def _cell(self, number: int) -> Cell:
        ends = np.cumsum(self._counts)
        plane = int(np.searchsorted(ends, number, side="right"))
        place = divmod(number - int(ends[plane] - self._counts[plane]), self._across[plane])
        rows, columns = (slice(at * self._side, (at + 1) * self._side) for at in place)
        return Cell(plane, rows, columns)
