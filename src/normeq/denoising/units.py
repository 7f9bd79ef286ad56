"""The units in which a denoiser sees a plane: statistics of the plane, the change and its inverse.

All of it commutes with a change of the image's own units, ``λ·y + μ``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.denoiser import Denoiser
from normeq.images.source import ImageSource

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Units:
    """The change of units around a denoiser, which sees ``(y - center) / scale``.

    One scale serves all channels that a denoiser sees together; each has a center of its own.

    Examples
    --------
    >>> units = Units(np.array([100.0]), 5.0, 5.0)
    >>> units.leave(units.enter(np.full((1, 2, 2), 110.0)))[0, 0, 0]
    np.float64(110.0)
    """

    center: Floats
    scale: float
    #: Factor on the way back: that of the way in, or 0 where the result is the center itself.
    back: float

    def enter(self, values: Floats) -> Floats:
        """Change ``(C, H, W)`` into the denoiser's units."""
        return (values - self.center[:, None, None]) / self.scale

    def leave(self, values: Floats) -> Floats:
        """Change ``(C, H, W)`` back into the image's units."""
        return values * self.back + self.center[:, None, None]


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of the pixels that have a value, and how many have none."""

    count: int
    mean: float
    spread: float
    missing: int


@dataclass(frozen=True)
class Moments:
    """Sums over some pixels of a plane; those of several parts are merged into those of all.

    Everything is relative to one of the values: a large offset costs no accuracy, and a constant
    plane has a spread of exactly 0.

    Attributes
    ----------
    count, missing
        How many pixels have a value, and how many have none.
    origin
        One of the values.
    mean
        Relative to the origin.
    squares
        Sum of the squared distances from the mean.
    """

    count: int = 0
    missing: int = 0
    origin: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Floats, mask: Mask) -> Self:
        """Return the moments of some values, without those that are masked as missing."""
        valid = values[~mask] if mask.any() else values.ravel()
        missing = values.size - valid.size
        if valid.size == 0:
            return cls(missing=missing)
        origin = float(valid[0])
        with np.errstate(over="ignore", invalid="ignore"):  # infinite: all of it is too large
            relative = valid - origin
            mean = float(relative.mean())
            squares = float(np.square(relative - mean).sum())
        return cls(valid.size, missing, origin, mean, squares)

    def merged(self, other: Moments) -> Moments:
        """Return the moments of two parts together, after Chan, Golub and LeVeque."""
        missing, count = self.missing + other.missing, self.count + other.count
        if not self.count or not other.count:
            return replace(self if self.count else other, missing=missing)
        delta = (other.origin - self.origin) + (other.mean - self.mean)
        mean = self.mean + delta * other.count / count
        squares = self.squares + other.squares + delta * delta * self.count * other.count / count
        return Moments(count, missing, self.origin, mean, squares)

    @property
    def statistics(self) -> Statistics:
        """The statistics that follow from the sums."""
        spread = float(np.sqrt(self.squares / self.count)) if self.count else 0.0
        return Statistics(self.count, self.origin + self.mean, spread, self.missing)


def merged_moments(parts: Iterable[Moments]) -> Moments:
    """Return the moments of all parts of a plane.

    Examples
    --------
    >>> halves = np.array([[1e9, 1e9 + 2], [1e9 + 4, np.nan]])
    >>> merged_moments(Moments.of(half, np.isnan(half)) for half in halves).statistics
    Statistics(count=3, mean=1000000002.0, spread=1.632..., missing=1)
    """
    return reduce(Moments.merged, parts, Moments())


def choose_units(
    denoiser: Denoiser,
    channels: Sequence[Statistics],
    sigma: float | None,
    source: ImageSource,
    value_range: tuple[float, float] | None,
    stabilised: bool = False,
) -> Units:
    """Choose the units in which a denoiser sees the channels of a plane.

    Parameters
    ----------
    denoiser
        Its law decides: zero mean and unit spread for an equivariant one.
    channels
        Statistics of each channel that it sees together.
    sigma
        Noise level in the same units, which is the scale of a constant plane.
    source
        What its stored values stand for.
    value_range
        What is 0 and 1 to a denoiser that is not equivariant, in physical units.
    stabilised
        Whether the plane has been through a transform, so that its units are those of its noise.
    """
    means = np.array([channel.mean for channel in channels])
    variance = np.mean([channel.spread**2 for channel in channels])
    if not denoiser.offset_per_channel:
        variance += means.var()
        means = np.full(len(channels), means.mean())
    spread = float(np.sqrt(variance))
    if denoiser.law == "norm":
        scale = spread or sigma or 1.0
        return Units(means, scale, spread if denoiser.keeps_constants else scale)
    if stabilised:
        return Units(np.zeros(len(channels)), 1.0, 1.0)
    if value_range is not None:
        low, high = ((value - source.offset) / source.gain for value in value_range)
        return Units(np.full(len(channels), low), high - low, high - low)
    zero = -source.offset / source.gain  # the stored number that means 0
    if denoiser.law == "scale":
        scale = spread or float(np.abs(means - zero).max()) or 1.0
    else:  # a function gets the image in its own units
        scale = 1 / source.gain
    return Units(np.full(len(channels), zero), scale, scale)


def to_dtype(values: Floats, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    """Round (for integers) and clip into the range of a dtype; return how many were clipped.

    Examples
    --------
    >>> to_dtype(np.array([-3.0, 1.6, 300.0]), np.dtype("uint8"))
    (array([  0,   2, 255], dtype=uint8), 2)
    """
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        low, high = float(limits.min), float(limits.max)
    else:
        bounds = np.iinfo(dtype)
        low, high = float(bounds.min), float(bounds.max)
        if high > bounds.max:  # the largest 64-bit integers have no double of their own
            high = float(np.nextafter(high, 0))
        values = np.rint(values)
    outside = int(np.count_nonzero((values < low) | (values > high)))
    return np.clip(values, low, high).astype(dtype), outside
