"""Random numbers and fields that several kinds of training samples are made with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage


def log_uniform(limits: tuple[float, float], rng: np.random.Generator) -> float:
    """Draw a number whose logarithm is uniform between those of two limits."""
    return math.exp(rng.uniform(*np.log(limits)))


def smooth_field(
    size: tuple[int, ...], points: tuple[int, int], order: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a field of about unit variance that varies smoothly.

    Parameters
    ----------
    size
        Height and width in pixels.
    points
        Rows and columns of the grid of normal numbers between which it is interpolated.
    order
        Of the splines that do so: 1 for straight lines.
    rng
        Source of randomness.
    """
    grid = rng.standard_normal(points)
    rows, columns = (
        np.linspace(0, count - 1, extent) for count, extent in zip(points, size, strict=True)
    )
    where = np.meshgrid(rows, columns, indexing="ij")
    field: NDArray[np.float64] = ndimage.map_coordinates(grid, where, order=order, mode="nearest")
    return field
