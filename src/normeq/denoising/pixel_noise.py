"""The noise that an image has, as far as it is known: what results are judged by.

What a denoiser is told may be less, or something else on purpose (`strength`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.assumed_noise import AssumedNoise
from normeq.denoising.image_parts import Place, estimate_part, in_stored_units, parts_of
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.plane import Plane
from normeq.denoising.plane_noise import LevelMap
from normeq.errors import InputError
from normeq.images.source import ImageSource
from normeq.noise import NoiseModel
from normeq.noise.correlation import WHITE, Correlation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PixelNoise:
    """The noise of one plane, in stored units.

    Attributes
    ----------
    model
        Its variance as a function of the signal, and its correlation.
    levels
        Its standard deviation at each pixel, where the caller states that.
    """

    model: NoiseModel
    levels: LevelMap | None = None

    @property
    def correlation(self) -> Correlation:
        """How the noise of neighbouring pixels is related."""
        return self.model.correlation

    def sigma(self, frame: int, rows: slice, columns: slice, signal: Floats) -> Floats:
        """Return the standard deviation at some pixels, given the signal there."""
        if self.levels is not None:
            return self.levels.read(frame, rows, columns)
        return self.model.sigma(signal)

    def seen(self, plane: Plane, channel: int, rows: slice, columns: slice) -> Floats:
        """Return the standard deviation at some pixels, in the units of the plane's denoiser.

        A number, or a map. Behind a variance-stabilising transform it is 1 in the transform's
        units, or what channels that share a transform have there.

        Parameters
        ----------
        plane, channel
            The plane, and which of the channels that are seen together.
        rows, columns
            The pixels.
        """
        if plane.noise.transform is not None:
            relative = plane.noise.relative
            return np.array((1.0 if relative is None else relative[channel]) / plane.units.scale)
        if self.levels is not None:
            return self.levels.read(plane.frame, rows, columns) / plane.units.scale
        return np.array(self.model.mean_sigma / plane.units.scale)


def known_noise(
    source: ImageSource, assumed: AssumedNoise, options: NoiseOptions
) -> dict[Place, PixelNoise]:
    """Return the noise of every plane: as stated, as found, or estimated now.

    Parameters
    ----------
    source
        The image.
    assumed
        What was worked out for the denoiser.
    options
        What the caller says.
    """
    noise: dict[Place, PixelNoise] = {}
    stated = options.sigma is not None and not isinstance(options.sigma, str)
    for name, part in parts_of(source, options.each_plane).items():
        found = assumed.found.get(name)
        if stated:
            correlation = WHITE if found is None else found.correlation
            noise |= {place: _stated(assumed, place, options, correlation) for place in part}
            continue
        if found is None:
            found = _estimated(source, part)
        stored = in_stored_units(source, found)
        noise |= dict.fromkeys(part, PixelNoise(stored))
    return noise


def _stated(
    assumed: AssumedNoise, place: Place, options: NoiseOptions, correlation: Correlation
) -> PixelNoise:
    """Return the noise that the caller states; its strength is no part of it."""
    told = assumed.of(*place)
    if told.levels is not None:
        levels = replace(told.levels, factor=told.levels.factor / options.strength)
        return PixelNoise(NoiseModel.uniform(1.0, correlation=correlation), levels)
    level = (told.level or 0.0) / options.strength
    return PixelNoise(NoiseModel.uniform(level, correlation=correlation))


def _estimated(source: ImageSource, part: list[Place]) -> NoiseModel:
    """Estimate noise of one level, for a denoiser that is told nothing."""
    model = estimate_part(source, part, signal_dependent=False)
    if model is None:
        raise InputError(
            "the noise of the image cannot be estimated, so nothing can be said about the noise "
            "that is left: state it with sigma (--sigma)."
        )
    return model
