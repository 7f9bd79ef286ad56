"""Variance-stabilising transforms: noise that depends on the signal becomes noise of one level.

The generalized Anscombe transform, for noise of variance ``gain · y + base``, and its exact
unbiased inverse (Mäkitalo and Foi, 2013), computed by integration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from normeq.errors import UsageError
from normeq.noise.model import NoiseModel

Floats = NDArray[np.float64]

# The transform is 2·√(photons + 3/8), with photons in the unit in which their variance is 1 each.
_SHIFT = 0.375
# Up to this expected value the inverse is integrated; beyond it a series is exact to 1e-6.
_SERIES_FROM = 400.0
# Where the table of the inverse ends, its correction is at its limit, 1/4, to 1e-7.
_TABLE_TO = 1e7
_TABLE_SIZE = 600
_DEVIATIONS = 9.0
_NORMAL_STEPS = 4001


class Stabilisation(Protocol):
    """A rising function of pixel values after which the noise has the same level everywhere."""

    def forward(self, values: ArrayLike) -> Floats:
        """Stabilise noisy values."""
        ...

    def inverse(self, values: ArrayLike) -> Floats:
        """Turn denoised stabilised values into means of the original ones."""
        ...


@dataclass(frozen=True)
class GeneralizedAnscombe:
    """Stabilise noise of variance ``gain · y + base`` to variance 1.

    ``T(y) = 2·√(y/gain + base/gain² + 3/8)``. It is unchanged when the image becomes ``λ·y + μ``
    and the model follows, and its inverse becomes ``λ·T⁻¹ + μ``. The inverse is unbiased: it maps
    the mean of ``T(y)`` to the mean of ``y``.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import GeneralizedAnscombe, poisson_gaussian
    >>> noisy = poisson_gaussian(np.full((300, 300), 4.0), 2.0, 1.0, np.random.default_rng(0))
    >>> transform = GeneralizedAnscombe(gain=2.0, base=1.0, read_noise=1.0)
    >>> stable = transform.forward(noisy)
    >>> print(f"{stable.std():.1f} {float(transform.inverse(stable.mean())):.1f}")
    1.0 4.0

    Parameters
    ----------
    gain, base
        Of the noise; see `NoiseModel`.
    read_noise
        Standard deviation of the part of the noise that is not counting noise, in the units of
        the image.
    """

    gain: float
    base: float
    read_noise: float = 0.0

    def __post_init__(self) -> None:
        if not self.gain > 0:
            raise UsageError(f"gain is {self.gain:g}; it must be positive.")
        if not self.read_noise >= 0:
            raise UsageError(f"read_noise is {self.read_noise:g}; it must not be negative.")

    @classmethod
    def of(cls, model: NoiseModel) -> GeneralizedAnscombe:
        """Return the transform for a noise model, whose darkest level is taken to hold no light."""
        return cls(model.gain, model.base, float(model.sigma(model.darkest)))

    def forward(self, values: ArrayLike) -> Floats:
        stable = np.array(values, dtype=np.float64)
        stable /= self.gain
        stable += self.base / self.gain**2 + _SHIFT
        np.maximum(stable, 0.0, out=stable)
        np.sqrt(stable, out=stable)
        stable *= 2.0
        return stable

    def mean(self, values: ArrayLike) -> Floats:
        """Return the mean of ``T(y)`` where the mean of ``y`` is given: what `inverse` inverts."""
        transformed = _inverse_table(self.read_noise / self.gain)[0]
        return np.interp(np.asarray(values, np.float64), self.inverse(transformed), transformed)

    def inverse(self, values: ArrayLike) -> Floats:
        transformed, corrections, slope = _inverse_table(self.read_noise / self.gain)
        stable = np.asarray(values, dtype=np.float64)
        means = np.interp(stable, transformed, corrections)
        means += (stable / 2.0) ** 2 - _SHIFT
        # Below what no light gives, the inverse goes on as a straight line.
        first = float(transformed[0])
        dark = (first / 2.0) ** 2 - _SHIFT + float(corrections[0])
        means = np.where(stable < first, dark + slope * (stable - first), means)
        means *= self.gain
        means -= self.base / self.gain
        return means


@dataclass(frozen=True)
class Scaling:
    """Bring noise of one level to level 1: ``(y - center) / σ``."""

    sigma: float
    center: float = 0.0

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise UsageError(f"sigma is {self.sigma:g}; it must be positive.")

    def forward(self, values: ArrayLike) -> Floats:
        return (np.asarray(values, dtype=np.float64) - self.center) / self.sigma

    def inverse(self, values: ArrayLike) -> Floats:
        return np.asarray(values, dtype=np.float64) * self.sigma + self.center


def stabilisation_of(model: NoiseModel) -> Stabilisation:
    """Return the transform that brings the noise of a model to variance 1 at every level."""
    if model.is_uniform:
        return Scaling(model.mean_sigma, model.mean)
    return GeneralizedAnscombe.of(model)


@lru_cache(maxsize=64)
def _inverse_table(read_noise: float) -> tuple[Floats, Floats, float]:
    """Tabulate the inverse for a read noise in photons.

    Returns rising means of the transform; what is to be added to ``(D/2)² - 3/8`` there to get
    ``photons + read_noise²``; and the slope of the inverse where there is no light.
    """
    photons = np.concatenate(
        [
            np.linspace(0.0, 2.0, _TABLE_SIZE // 3, endpoint=False),
            np.geomspace(2.0, _TABLE_TO, 2 * _TABLE_SIZE // 3),
        ]
    )
    expected = photons + read_noise**2
    transformed = _series(photons, read_noise)
    near = expected < _SERIES_FROM
    if near.any():
        transformed[near] = _integrated(photons[near], read_noise)
    corrections = expected - ((transformed / 2.0) ** 2 - _SHIFT)
    rise = (photons[1] - photons[0]) / (transformed[1] - transformed[0])
    return transformed, corrections, float(rise)


def _integrated(photons: Floats, read_noise: float) -> Floats:
    """Return the mean of the transform of Poisson counts with Gaussian noise, by summation."""
    most = float(photons.max())
    counts = np.arange(np.ceil(most + _DEVIATIONS * np.sqrt(most) + 30.0))
    normal = np.linspace(-_DEVIATIONS, _DEVIATIONS, _NORMAL_STEPS)
    density = np.exp(-(normal**2) / 2.0)
    density /= density.sum()
    of_count = np.array(
        [
            density @ (2.0 * np.sqrt(np.maximum(value + read_noise * normal + _SHIFT, 0.0)))
            for value in counts + read_noise**2
        ]
    )
    logarithm = special.xlogy(counts, photons[:, None]) - photons[:, None]
    probability = np.exp(logarithm - special.gammaln(counts + 1.0))
    mean: Floats = probability @ of_count
    return mean


def _series(photons: Floats, read_noise: float) -> Floats:
    """Return the same mean for many photons or much read noise, by a series in its moments."""
    variance = photons + read_noise**2
    level = variance + _SHIFT
    third, fourth = photons, 3.0 * variance**2 + photons
    fifth, sixth = 10.0 * variance * photons, 15.0 * variance**3
    bracket = (
        1.0
        - variance / (8.0 * level**2)
        + third / (16.0 * level**3)
        - 5.0 * fourth / (128.0 * level**4)
        + 7.0 * fifth / (256.0 * level**5)
        - 21.0 * sixth / (1024.0 * level**6)
    )
    mean: Floats = 2.0 * np.sqrt(level) * bracket
    return mean
