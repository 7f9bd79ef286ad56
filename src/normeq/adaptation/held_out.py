"""Tiles that no step sees: on them, the error of a network is estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from normeq.adaptation.noisy_planes import NoisyPlane, NoisyTile
from normeq.adaptation.plane_grid import Cell, PlaneGrid
from normeq.adaptation.risk import STEP, probe
from normeq.adaptation.tile_batch import TileBatch, output_of
from normeq.errors import InputError

Floats = NDArray[np.float64]

# One tile in this many is held out; the fewest that are enough, and the most that are worth it.
_SHARE = 4
_FEWEST = 4
_MOST = 20
# Sides of the tiles: of a large image, and of one with too few such tiles.
_SIDES = (64, 32)
# Pixels around a tile that are read with it: what lies beyond them matters little.
_MARGIN = 32
_PROBES = 2


@dataclass(frozen=True)
class Window:
    """A cell with its surroundings, and the probes it is judged with."""

    tile: NoisyTile
    probes: list[Floats]
    inside: tuple[slice, slice, slice]
    target: Floats | None


@dataclass(frozen=True)
class Terms:
    """What the estimate of the squared error is made of, pixel by pixel, in units of the noise.

    Attributes
    ----------
    residual
        Squared difference between output and input or, for repeated frames, another frame.
    divergence
        Derivative of the output by the input; zero where the target is another frame.
    """

    residual: list[Floats]
    divergence: list[Floats]


def choose_cells(planes: Sequence[NoisyPlane], seed: int) -> list[Cell]:
    """Choose the squares that are held out, spread at random over all planes.

    Parameters
    ----------
    planes
        All planes there are.
    seed
        Of the choice.
    """
    for side in _SIDES:
        grid = PlaneGrid(planes, side)
        if len(grid) >= _SHARE * _FEWEST:
            break
    else:
        raise InputError(
            "the images are too small to adapt to: together they must contain at least "
            f"{_SHARE * _FEWEST} squares of {_SIDES[-1]} x {_SIDES[-1]} pixels."
        )
    return grid.sample(min(_MOST, len(grid) // _SHARE), np.random.default_rng([seed, 0]))


class HeldOut:
    """The held-out cells of some planes, and the estimates of a network's error on them.

    Parameters
    ----------
    planes
        All planes there are.
    seed
        Of the cells and the probes.
    repeated
        Whether the frames of each image show one scene: then another frame is the target, and
        nothing needs to be known of the noise.
    """

    def __init__(self, planes: Sequence[NoisyPlane], seed: int, repeated: bool = False) -> None:
        self.cells = choose_cells(planes, seed)
        # Frames of one scene are each other's targets: what is held out of one is so of all.
        self._groups = [
            (id(plane.source), plane.sample, plane.alike if repeated else plane.frame)
            for plane in planes
        ]
        rng = np.random.default_rng([seed, 1])
        self._windows = [
            self._window(planes[cell.plane], cell, rng, repeated) for cell in self.cells
        ]

    @staticmethod
    def _window(plane: NoisyPlane, cell: Cell, rng: np.random.Generator, repeated: bool) -> Window:
        rows, columns = (
            slice(max(0, span.start - _MARGIN), min(extent, span.stop + _MARGIN))
            for span, extent in zip((cell.rows, cell.columns), plane.size, strict=True)
        )
        tile = plane.tile(rows, columns)
        inside = (
            slice(None),
            slice(cell.rows.start - rows.start, cell.rows.stop - rows.start),
            slice(cell.columns.start - columns.start, cell.columns.stop - columns.start),
        )
        if repeated:
            return Window(tile, [], inside, plane.repetition(tile, rows, columns, rng))
        shape = tile.values.shape
        return Window(
            tile, [probe(shape, rng, plane.correlation) for _ in range(_PROBES)], inside, None
        )

    def trains(self, plane: int, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return which pixels of a rectangle belong to no held-out cell."""
        free = np.ones((rows.stop - rows.start, columns.stop - columns.start), bool)
        for cell in self.cells:
            if self._groups[cell.plane] == self._groups[plane]:
                down, across = (
                    slice(max(0, held.start - seen.start), max(0, held.stop - seen.start))
                    for held, seen in zip((cell.rows, cell.columns), (rows, columns), strict=True)
                )
                free[down, across] = False
        return free

    @torch.inference_mode()
    def terms(self, net: nn.Module) -> Terms:
        """Run a network on the held-out tiles."""
        residual, divergence = [], []
        for window in self._windows:
            tile = window.tile
            output = _run(net, tile, tile.values)
            known = np.where(tile.known, 1.0, np.nan)
            target = tile.values if window.target is None else window.target
            slope = np.zeros_like(output)
            for drawn in window.probes:
                moved = tile.values + STEP * tile.sigma * drawn
                change = _run(net, tile, moved) - output
                slope += tile.sigma * drawn * change / (STEP * len(window.probes))
            residual.append(((output - target) ** 2 * known)[window.inside])
            divergence.append((slope * known)[window.inside])
        return Terms(residual, divergence)

    def implied_level(self, terms: Terms) -> float:
        """Return the noise level at which a network removes neither too much nor too little.

        For the best denoiser of noise of level σ, the mean of ``(f(y) - y)²`` is σ² times one less
        the mean divergence. A network that works out the level by itself is more often right about
        it than an estimate from the image, which takes texture for noise.
        """
        return _level(np.concatenate(terms.residual), np.concatenate(terms.divergence))

    def implied_levels(self, terms: Terms) -> Floats:
        """Return the same for each tile."""
        return np.array(
            [_level(*tile) for tile in zip(terms.residual, terms.divergence, strict=True)]
        )

    def mse(self, terms: Terms, level: float) -> float:
        """Return the estimated mean squared error of a network, in units of the noise."""
        return float(self._errors(terms, level).mean())

    def rmse(self, terms: Terms, level: float) -> float:
        """Return the estimated root mean squared error of a network, in the image's units."""
        units = np.array([window.tile.unit for window in self._windows])
        return math.sqrt(max(float((self._errors(terms, level) * units**2).mean()), 0.0))

    def _errors(self, terms: Terms, level: float) -> Floats:
        return np.array(
            [
                np.nanmean(residual + 2 * level**2 * slope) - level**2
                for residual, slope in zip(terms.residual, terms.divergence, strict=True)
            ]
        )


def _level(residual: Floats, divergence: Floats) -> float:
    return math.sqrt(float(np.nanmean(residual)) / max(1 - float(np.nanmean(divergence)), 1e-3))


def _run(net: nn.Module, tile: NoisyTile, values: Floats) -> Floats:
    result: Floats = output_of(net, TileBatch.of([tile], [values])).double().cpu().numpy()[0]
    return result
