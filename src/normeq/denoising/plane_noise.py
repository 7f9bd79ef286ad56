"""What is assumed of the noise of one plane, and what the denoiser is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from normeq.errors import UsageError
from normeq.images.source import ImageSource
from normeq.models.noise_maps import SIGMA_FLOOR
from normeq.noise import Stabilisation

Floats = NDArray[np.float64]

# Rows that are read at a time to find the mean of a map.
_ROWS = 256


@dataclass(frozen=True)
class PlaneNoise:
    """The noise of one plane in stored units; after the transform, where there is one.

    Attributes
    ----------
    transform
        Applied before the denoiser, and undone after it.
    level
        Standard deviation that the denoiser is told; None if it works that out by itself.
    relative
        Levels of the channels that are seen together, as multiples of `level`, for a denoiser that
        is told each; None: all are the same.
    levels
        The same, for each pixel.
    lengths
        How far the noise is correlated along rows and columns, for a denoiser that is told.
    """

    transform: Stabilisation | None = None
    level: float | None = None
    relative: tuple[float, ...] | None = None
    levels: LevelMap | None = None
    lengths: tuple[float, float] | None = None


@dataclass(frozen=True)
class LevelMap:
    """Noise levels of every pixel: of one plane for all, or of each plane its own.

    Attributes
    ----------
    image
        The levels, in physical units.
    factor
        From these units to the stored ones of the image that is denoised.
    """

    image: ImageSource
    factor: float

    def read(self, frame: int, rows: slice, columns: slice) -> Floats:
        """Return the levels of some pixels, in stored units.

        They are at least a small share of the plane's mean, as networks take them.
        """
        levels = self._levels(frame, rows, columns)
        return np.maximum(levels, SIGMA_FLOOR * self._mean(frame))

    def is_zero(self, frame: int, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return which pixels are stated to have no noise at all."""
        zero: NDArray[np.bool_] = self._levels(frame, rows, columns) == 0
        return zero

    def _levels(self, frame: int, rows: slice, columns: slice) -> Floats:
        frame = frame if self.image.frames > 1 else 0
        stored = self.image.read_region(frame, rows, columns)[..., 0]
        levels = self.image.physical(stored) * self.factor
        if not np.isfinite(levels).all() or (levels < 0).any():
            raise UsageError("the map of sigma contains values that are negative or not finite.")
        return levels

    @lru_cache(maxsize=1)  # noqa: B019 - lives no longer than the run
    def _mean(self, frame: int) -> float:
        height, width = self.image.height, self.image.width
        bands = (slice(start, min(start + _ROWS, height)) for start in range(0, height, _ROWS))
        everywhere = slice(0, width)
        sums = (self._levels(frame, band, everywhere).sum() for band in bands)
        return float(sum(sums) / (height * width))
