"""Planes whose noise is known, and tiles of them in units in which the noise has level 1.

``tile(λ·y + μ)`` is the same as that of ``y``: an equivariant network loses nothing by these units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.assumed_noise import AssumedNoise
from normeq.denoising.image_parts import Place, estimate_part, parts_of
from normeq.denoising.missing import missing_pixels
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.plane import Plane
from normeq.denoising.plane_noise import PlaneNoise
from normeq.denoising.units import Units
from normeq.errors import InputError
from normeq.images.source import ImageSource
from normeq.noise import Correlation, NoiseModel
from normeq.noise.correlation import WHITE

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Values are rounded to this share of the noise, so that images that differ by their units, and
# hence by rounding, are the same to what is tuned on them.
_GRAIN = 2.0**-12


@dataclass(frozen=True)
class NoisyTile:
    """A rectangle of a plane, in units of its noise, with its mean subtracted.

    Attributes
    ----------
    values
        Shape ``(1, H, W)``, without holes.
    known
        Which pixels have a value.
    sigma
        Level of the noise at every pixel: 1, or a map whose mean is 1.
    told
        Whether the network is told the level.
    lengths
        How far the noise is correlated along rows and columns, as the network is told.
    origin
        The mean that was subtracted.
    unit
        Level of the noise in the units of the image.
    """

    values: Floats
    known: Mask
    sigma: Floats
    told: bool
    lengths: tuple[float, float]
    origin: float
    unit: float

    def cut(self, rows: slice, columns: slice) -> NoisyTile:
        """Return a part of it."""
        inside = (slice(None), rows, columns)
        return replace(
            self, values=self.values[inside], known=self.known[inside], sigma=self.sigma[inside]
        )


@dataclass(frozen=True)
class NoisyPlane:
    """One plane of an image, what its noise is, and what the network is told of it.

    Attributes
    ----------
    source, frame, sample
        Where the plane is.
    noise
        What is done and told when it is denoised.
    sigma
        Level of the noise in stored units, after the transform of `noise`.
    model
        The noise in physical units, if it was estimated or given as a model.
    alike
        Frames with the same noise: those of its channel.
    """

    source: ImageSource
    frame: int
    sample: int
    noise: PlaneNoise
    sigma: float
    model: NoiseModel | None
    alike: tuple[int, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.height, self.source.width

    @property
    def correlation(self) -> Correlation:
        """Of the noise."""
        return WHITE if self.model is None else self.model.correlation

    def tile(self, rows: slice, columns: slice, frame: int | None = None) -> NoisyTile:
        """Read a rectangle of this plane, or of another frame with the same noise."""
        frame = self.frame if frame is None else frame
        stored = self.source.read_region(frame, rows, columns)[None, ..., self.sample]
        missing = missing_pixels(stored, self.source.blank)
        level, sigma = self.sigma, np.ones((1, 1, 1))
        if self.noise.levels is not None:
            levels = self.noise.levels.read(frame, rows, columns)[None]
            level = float(levels.mean())
            sigma = levels / level
        valid = stored[~missing].astype(np.float64)
        transform = self.noise.transform
        seen = valid if transform is None else transform.forward(valid)
        center = float(seen.mean()) if valid.size else 0.0
        units = Units(np.array([center]), level, level)
        plane = Plane(frame, [self.sample], units, np.zeros(1), self.noise)
        values = np.round(plane.seen(stored, missing) / _GRAIN) * _GRAIN
        told = self.noise.level is not None or self.noise.levels is not None
        lengths = self.noise.lengths or (0.0, 0.0)
        shape = values.shape
        unit = self._unit(level, float(valid.mean()) if valid.size else 0.0)
        sigma = np.broadcast_to(sigma, shape)
        return NoisyTile(values, ~missing, sigma, told, lengths, center / level, unit)

    def repetition(
        self, tile: NoisyTile, rows: slice, columns: slice, rng: np.random.Generator
    ) -> Floats:
        """Read the same rectangle of another frame, in the units of a tile of this one."""
        others = [frame for frame in self.alike if frame != self.frame]
        other = self.tile(rows, columns, others[rng.integers(len(others))])
        values = other.values + (other.origin - tile.origin)
        return np.where(other.known, values, np.nan)

    def _unit(self, level: float, mean: float) -> float:
        """Return the level of the noise in physical units, around a mean of stored values."""
        gain = abs(self.source.gain)
        if self.noise.transform is None or self.model is None:
            return level * gain
        return float(self.model.sigma(self.source.gain * mean + self.source.offset))


def noisy_planes(
    source: ImageSource, assumed: AssumedNoise, options: NoiseOptions
) -> list[NoisyPlane]:
    """List the planes of an image with the level of their noise, told to the network or not.

    Parameters
    ----------
    source
        The image.
    assumed
        What is assumed of its noise when it is denoised, at strength 1.
    options
        What the caller says of it.
    """
    planes: list[NoisyPlane] = []
    for name, part in parts_of(source, options.each_plane).items():
        model = assumed.found.get(name)
        told = assumed.of(*part[0])
        if model is None and told.level is None and told.levels is None:
            model = estimate_part(source, part, False)
        planes += _planes_of(source, part, assumed, model)
    return planes


def _planes_of(
    source: ImageSource, part: Sequence[Place], assumed: AssumedNoise, model: NoiseModel | None
) -> list[NoisyPlane]:
    found = []
    alike = tuple(frame for frame, _ in part)
    for frame, sample in part:
        noise = assumed.of(frame, sample)
        if noise.transform is not None:
            sigma = 1.0
        elif noise.level is not None or model is None:
            sigma = noise.level or 0.0
        else:
            sigma = model.mean_sigma / abs(source.gain)
        if not sigma > 0 and noise.levels is None:
            raise InputError(
                "no noise was found in an image, so there is nothing to adapt to: state the noise "
                "level with sigma (--sigma), or leave the image out."
            )
        found.append(NoisyPlane(source, frame, sample, noise, sigma, model, alike))
    return found


def without_strength(options: NoiseOptions) -> NoiseOptions:
    """Return what the caller says of the noise, but for how much of it should be removed."""
    return replace(options, strength=1.0)
