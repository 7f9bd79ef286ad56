"""What is assumed of the noise of each plane, and what the denoiser is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.denoising.denoiser import Denoiser
from normeq.errors import UsageError
from normeq.images.array import ArraySource
from normeq.images.source import ImageSource
from normeq.models.noise_maps import SIGMA_FLOOR

Floats = NDArray[np.float64]


class Transform(Protocol):
    """A change of values after which the noise has one level."""

    def forward(self, values: Floats) -> Floats:
        """Stabilise the variance of noisy values."""

    def inverse(self, values: Floats) -> Floats:
        """Return the expected values of denoised, stabilised ones."""


@dataclass(frozen=True)
class PlaneNoise:
    """The noise of one plane in stored units; after the transform, where there is one.

    Attributes
    ----------
    transform
        Applied before the denoiser, and undone after it.
    level
        Standard deviation that the denoiser is told; None if it works that out by itself.
    levels
        The same, for each pixel.
    lengths
        How far the noise is correlated along rows and columns, for a denoiser that is told.
    """

    transform: Transform | None = None
    level: float | None = None
    levels: LevelMap | None = None
    lengths: tuple[float, float] | None = None


@dataclass(frozen=True)
class LevelMap:
    """Noise levels of every pixel: of one plane for all, or of each plane its own.

    Attributes
    ----------
    image
        The levels, in physical units.
    gain
        Physical units of one stored unit of the image that is denoised.
    """

    image: ImageSource
    gain: float

    def read(self, frame: int, rows: slice, columns: slice) -> Floats:
        """Return the levels of some pixels, in stored units.

        Raised to a small share of the plane's mean, except where they are exactly 0.
        """
        frame = frame if self.image.frames > 1 else 0
        levels = self._levels(frame, rows)[:, columns]
        return np.where(levels > 0, np.maximum(levels, SIGMA_FLOOR * self._mean(frame)), 0.0)

    def _levels(self, frame: int, rows: slice) -> Floats:
        stored = self.image.read(frame, rows.start, rows.stop)[..., 0]
        levels = self.image.physical(stored) / self.gain
        if not np.isfinite(levels).all() or (levels < 0).any():
            raise UsageError("the map of sigma holds values that are not numbers from 0 up.")
        return levels

    @lru_cache(maxsize=1)  # noqa: B019 - lives no longer than the run
    def _mean(self, frame: int) -> float:
        rows = (slice(i, i + 1) for i in range(self.image.height))
        return float(np.mean([self._levels(frame, row).mean() for row in rows]))


def given_noise(denoiser: Denoiser, source: ImageSource, sigma: ArrayLike | None) -> AssumedNoise:
    """Return the noise that the caller states: one level, one for each plane, a map, or none."""
    check_sigma(denoiser, sigma)
    if sigma is None:
        return AssumedNoise([PlaneNoise()] * source.frames)
    levels = np.asarray(sigma, dtype=np.float64)
    gain = abs(source.gain)
    levels_by_pixel = levels.ndim >= 2 and levels.shape != source.leading
    if levels_by_pixel and not denoiser.takes_maps:
        raise UsageError(f"{denoiser.name} takes one noise level for a plane, not a map of it.")
    for shape, axes in (((source.height, source.width), "YX"), (source.shape, source.axes)):
        if levels.shape == shape != source.leading:
            every = LevelMap(ArraySource(levels, axes), gain)
            return AssumedNoise([PlaneNoise(levels=every)] * source.frames)
    try:
        per_frame = np.broadcast_to(levels, source.leading).ravel() / gain
    except ValueError as error:
        raise UsageError(
            f"sigma has shape {levels.shape}: give one number, an array of shape "
            f"{source.leading} with one for each plane, or a map of shape {source.shape}."
        ) from error
    return AssumedNoise([PlaneNoise(level=float(level)) for level in per_frame])


@dataclass(frozen=True)
class AssumedNoise:
    """The noise of every frame of an image."""

    frames: list[PlaneNoise]

    def of(self, frame: int, sample: int) -> PlaneNoise:
        """Return the noise of one plane."""
        return self.frames[frame]


def check_sigma(denoiser: Denoiser, sigma: ArrayLike | None) -> None:
    """Refuse a noise level that the denoiser does not take, or the lack of one it needs."""
    if sigma is None:
        if denoiser.takes_sigma == "always":
            raise UsageError(
                f"{denoiser.name} needs the noise level: pass sigma, in the units of the image "
                "(normeq.estimate_sigma estimates it)."
            )
        return
    if denoiser.takes_sigma == "never":
        raise UsageError(f"{denoiser.name} is blind: leave sigma out, or use another model.")
    levels = np.asarray(sigma, dtype=np.float64)
    if not np.isfinite(levels).all() or (levels < 0).any():
        raise UsageError(f"sigma is {sigma}, but a noise level is a number from 0 up.")
