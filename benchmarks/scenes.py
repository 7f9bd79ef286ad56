"""Synthetic scenes that look like fluorescence microscopy: filaments, nuclei, beads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Floats = NDArray[np.float64]


def microscopy_scenes(count: int = 12, side: int = 512) -> Iterator[Floats]:
    """Yield clean images of the three kinds in turn, from about 5 to 255 grey levels."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        drawn = (_filaments, _nuclei, _beads)[seed % 3](rng, side)
        drawn -= drawn.min()
        bright = np.clip(drawn / np.quantile(drawn, 0.999), 0.0, 1.2)
        yield 200.0 * bright + rng.uniform(5.0, 25.0)


def _filaments(rng: np.random.Generator, side: int) -> Floats:
    drawn = np.zeros((side, side))
    for _ in range(rng.integers(25, 60)):
        angle = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(0.0, 0.03, 1500))
        y, x = rng.uniform(0, side, (2, 1)) + 0.6 * np.cumsum([np.sin(angle), np.cos(angle)], 1)
        inside = (x >= 0) & (x < side) & (y >= 0) & (y < side)
        place = (y[inside].astype(int), x[inside].astype(int))
        np.add.at(drawn, place, rng.uniform(0.3, 1.0))
    haze = 0.3 * ndimage.gaussian_filter(drawn, 20.0)
    return ndimage.gaussian_filter(drawn, rng.uniform(1.2, 2.0)) + haze


def _nuclei(rng: np.random.Generator, side: int) -> Floats:
    drawn = np.zeros((side, side))
    rows, columns = np.mgrid[:side, :side]
    for _ in range(rng.integers(15, 50)):
        down, across = rows - rng.uniform(0, side), columns - rng.uniform(0, side)
        turn, (tall, wide) = rng.uniform(0, np.pi), rng.uniform(12.0, 30.0, 2)
        along = (down * np.cos(turn) + across * np.sin(turn)) / tall
        beside = (across * np.cos(turn) - down * np.sin(turn)) / wide
        drawn = np.maximum(drawn, rng.uniform(0.3, 1.0) * (along**2 + beside**2 < 1))
    texture = ndimage.gaussian_filter(rng.standard_normal(drawn.shape), 3.0)
    return ndimage.gaussian_filter(drawn * (1.0 + 0.15 * texture / texture.std()), 1.5)


def _beads(rng: np.random.Generator, side: int) -> Floats:
    drawn = np.zeros((side, side))
    for _ in range(rng.integers(200, 800)):
        drawn[tuple(rng.integers(0, side, 2))] += rng.uniform(0.2, 1.0)
    haze = 0.2 * ndimage.gaussian_filter(drawn, 15.0)
    return ndimage.gaussian_filter(drawn, rng.uniform(1.2, 2.5)) + haze
