"""One plane on its way through a denoiser: its units, its noise, and the way there and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normeq.denoising.denoiser import Denoiser
from normeq.denoising.missing import fill_missing, missing_pixels
from normeq.denoising.plane_noise import PlaneNoise
from normeq.denoising.units import Floats, Mask, Moments, Units, merged_moments
from normeq.errors import UsageError
from normeq.images.source import ImageSource, Pixels

# Moments are taken of this many pixels at a time, which need several copies of themselves.
_PIXELS_IN_DOUBLE = 2**18


class Plane(NamedTuple):
    """Samples of one frame that are seen together.

    Attributes
    ----------
    frame, samples
        Where the plane is in the image.
    units
        The units in which the denoiser sees it.
    means
        What a hole gets that is too deep to be filled from its rim, in these units.
    noise
        What is assumed of its noise.
    """

    frame: int
    samples: list[int]
    units: Units
    means: Floats
    noise: PlaneNoise

    def seen(self, stored: Pixels, missing: Mask) -> Floats:
        """Return what the denoiser sees of stored values ``(C, H, W)``, with holes filled."""
        holes = missing.any()
        values = np.where(missing, 0.0, stored) if holes else stored.astype(np.float64)
        transform = self.noise.transform
        values = self.units.enter(values if transform is None else transform.forward(values))
        if not holes:
            return values
        channels = zip(values, missing, self.means, strict=True)
        return np.stack([fill_missing(*channel) for channel in channels])

    def restored(self, values: Floats) -> Floats:
        """Change what the denoiser gives back into stored values."""
        stabilised = self.units.leave(values)
        transform = self.noise.transform
        return stabilised if transform is None else transform.inverse(stabilised)

    def sigma(self, rows: slice, columns: slice) -> Floats | None:
        """Return what the denoiser is told of the noise of some pixels, in its units.

        One level, one for each channel, or a map ``(1, H, W)``; None if it is told nothing.
        """
        if self.noise.levels is not None:
            levels = self.noise.levels.read(self.frame, rows, columns)
            return levels[None] / self.units.scale
        if self.noise.level is None:
            return None
        relative = 1.0 if self.noise.relative is None else self.noise.relative
        return np.multiply(relative, self.noise.level / self.units.scale)

    def is_free_of_noise(self, rows: slice, columns: slice) -> Mask:
        """Return which pixels are stated to have no noise: they come back unchanged."""
        if self.noise.levels is None:
            return np.zeros((1, 1), bool)
        return self.noise.levels.is_zero(self.frame, rows, columns)


def sample_groups(denoiser: Denoiser, source: ImageSource) -> list[list[int]]:
    """Return the samples that the denoiser sees together; an opacity is not among them."""
    samples = list(range(source.samples - source.alpha))
    if denoiser.channels == 1:
        return [[sample] for sample in samples]
    if len(samples) != denoiser.channels:
        raise UsageError(
            f"{denoiser.name} takes images of {denoiser.channels} channels, and this one has "
            f"{len(samples)}: use a model for gray images, which denoises channel by channel."
        )
    return [samples]


def stored_moments(stored: Pixels, blank: float | None, noise: PlaneNoise) -> Moments:
    """Return the moments of some pixels as the denoiser will see them, but for its units."""
    step = max(1, _PIXELS_IN_DOUBLE // max(1, stored.shape[1]))
    bands = (stored[start : start + step] for start in range(0, len(stored), step))
    return merged_moments(_moments_of(band, blank, noise) for band in bands)


def _moments_of(stored: Pixels, blank: float | None, noise: PlaneNoise) -> Moments:
    missing = missing_pixels(stored, blank)
    values = stored.astype(np.float64)
    if noise.transform is not None:
        values = noise.transform.forward(np.where(missing, 0.0, values))
    return Moments.of(values, missing)
