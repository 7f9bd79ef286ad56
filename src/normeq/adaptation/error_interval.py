"""How large the error of a denoised image is, and how well that is known, without ground truth.

Two estimates are combined. Stein's is unbiased for any denoiser, but needs the noise level almost
exactly: an error of 10 % in σ² changes it by 0.1·σ², often most of its value. For the best possible
denoiser, the mean squared error is ``tr(A·Σ)`` (Tweedie's formula), which is merely proportional to
σ²; real networks are within a factor of it, which was measured. Stein's estimate is the likelihood,
Tweedie's the prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from normeq.adaptation.risk import risk_terms
from normeq.denoising.probing import ProbedRegion
from normeq.noise.correlation import Correlation

Floats = NDArray[np.float64]

#: Share of the intervals that are meant to contain the truth.
CONFIDENCE = 0.9
# What was measured on photographs and synthetic scenes with known noise, by the share of the noise
# that a denoiser keeps, tr(A·Σ) / tr Σ: large for fine texture under weak noise.
_KEPT = (0.02, 0.06, 0.1, 0.2, 0.5, 1.0)
# Logarithm of a network's mean squared error relative to Tweedie's: its mean and its spread.
_NETWORK_MEAN = (-0.9, -0.3, -0.1, 0.05, 0.0, 0.0)
_NETWORK_SPREAD = (0.6, 0.45, 0.4, 0.3, 0.3, 0.3)
# Standard error of an estimated variance of noise, beside what chance explains: texture counts as
# noise. Correlated noise is harder to tell from texture, and a line may not be what the variance of
# noise follows (the same, and docs/data/noise-accuracy.csv).
_TEXTURE_ERROR = (0.045, 0.045, 0.045, 0.09, 0.4, 0.8)
_TEXTURE_IF_CORRELATED = 1.5
# Texture adds to the variance, by this multiple of its standard error on average.
_TEXTURE_MEAN = 0.35
_CORRELATED_ERROR = 0.12
_LINE_ERROR = 0.08
# Photographs that their cameras processed: what is left of their noise varies from place to place,
# and colours share it. Logarithm of the true error relative to the estimate, its mean and spread,
# with estimated and with given noise (benchmarks/processed_quality.py).
_PROCESSED_ESTIMATED = (1.6, 1.0)
_PROCESSED_GIVEN = (0.9, 0.3)
# Nothing is known about denoisers other than networks.
_OTHER_SPREAD = 2.0
# Errors of noise levels have long tails: those of Student's t with this many degrees of freedom.
_TAILS = 4.0


@dataclass(frozen=True)
class ErrorSums:
    """Sums over pixels, in stored units, from which the error is estimated.

    Attributes
    ----------
    pixels
        How many have a value.
    stein
        Of the terms of Stein's estimate.
    variance
        Of σ².
    divergence
        Of ``n · A·n``, an estimate of ``tr(A·Σ)``.
    fluctuation
        Variance of the sum of Stein's terms around the true error: ``4·rᵀΣr + 4·tr((AΣ)²) -
        2·tr(Σ²)`` for what was removed, r (Bellec and Zhang, 2021).
    probing
        What the probes add to that variance.
    remaining
        Of ``(A·n)²``, the noise that remains.
    """

    pixels: int = 0
    stein: float = 0.0
    variance: float = 0.0
    divergence: float = 0.0
    fluctuation: float = 0.0
    probing: float = 0.0
    remaining: float = 0.0

    def __add__(self, other: ErrorSums) -> ErrorSums:
        mine, theirs = vars(self).values(), vars(other).values()
        return ErrorSums(*(a + b for a, b in zip(mine, theirs, strict=True)))

    def scaled(self, factor: float) -> ErrorSums:
        """Return the sums in units in which values are `factor` times as large."""
        square, fourth = factor**2, factor**4
        return ErrorSums(
            self.pixels,
            self.stein * square,
            self.variance * square,
            self.divergence * square,
            self.fluctuation * fourth,
            self.probing * fourth,
            self.remaining * square,
        )

    @classmethod
    def of(cls, region: ProbedRegion, correlation: Correlation) -> Self:
        """Return the sums of one region, whose noise is correlated as stated."""
        known = np.isfinite(region.denoised)
        sigma = np.where(known, region.sigma, 0.0)
        removed = np.where(known, region.noisy - region.denoised, 0.0)
        count = len(region.probes)
        stein = divergence = remaining = spread = 0.0
        for drawn, moved in zip(region.probes, region.responses, strict=True):
            terms = risk_terms(
                region.noisy, region.denoised, region.denoised + moved, drawn, sigma, 1
            )
            stein += float(terms[known].sum()) / count
            divergence += float((sigma * drawn * moved)[known].sum()) / count
            remaining += float((moved[known] ** 2).sum()) / count
            spread += noise_energy(np.where(known, moved, 0.0), sigma, correlation) / count
        fluctuation = 4 * noise_energy(removed, sigma, correlation) + 4 * spread
        fluctuation -= 2 * float((sigma**4).sum()) * _squared_correlation(correlation)
        return cls(
            int(known.sum()),
            stein,
            float((sigma**2).sum()),
            divergence,
            max(fluctuation, 0.0),
            4 * 2 * spread / count,
            remaining,
        )


def noise_energy(values: Floats, sigma: Floats, correlation: Correlation) -> float:
    """Return ``vᵀΣv``, the variance that noise gives to a weighted sum of pixels."""
    weighted = sigma * values
    if correlation.is_white:
        return float((weighted**2).sum())
    table = np.array(correlation.autocorrelation)
    full = np.block(
        [[np.flip(table[1:, 1:]), np.flipud(table[1:])], [np.fliplr(table[:, 1:]), table]]
    )
    shape = [fft.next_fast_len(a + b) for a, b in zip(weighted.shape, full.shape, strict=True)]
    power = np.abs(fft.rfft2(weighted, shape)) ** 2
    products = fft.irfft2(power, shape)
    lags = [np.arange(1 - length, length) for length in table.shape]
    return max(float((products[np.ix_(*lags)] * full).sum()), 0.0)


def _squared_correlation(correlation: Correlation) -> float:
    """Return ``Σ ρ²`` over all lags."""
    squares = np.square(correlation.autocorrelation)
    both = [np.where(np.arange(length) > 0, 2.0, 1.0) for length in squares.shape]
    return float(both[0] @ squares @ both[1]) if not correlation.is_white else 1.0


@dataclass(frozen=True)
class ErrorInterval:
    """A mean squared error and the interval that contains the truth in 90 % of all cases.

    Attributes
    ----------
    mse, low, high
        In squared units of the image.
    stein, tweedie
        The two estimates behind it.
    """

    mse: float
    low: float
    high: float
    stein: float
    tweedie: float

    @property
    def is_known(self) -> bool:
        """Whether the interval spans no more than a factor of 2."""
        return self.high <= 2 * self.low


@dataclass(frozen=True)
class LevelError:
    """How well the variance of the noise is known, relative to it.

    Attributes
    ----------
    statistical
        Standard error that chance explains.
    estimated
        Whether the noise was estimated from the image, which takes texture for noise.
    correlated, signal_dependent
        What kind of noise it is.
    in_color
        Whether colours are denoised together.
    """

    statistical: float = 0.0
    estimated: bool = False
    correlated: bool = False
    signal_dependent: bool = False
    in_color: bool = False

    @property
    def processed(self) -> tuple[float, float]:
        """Mean and spread of what the processing of a camera adds to the logarithm of an error."""
        if not (self.in_color and self.correlated):
            return 0.0, 0.0
        return _PROCESSED_ESTIMATED if self.estimated else _PROCESSED_GIVEN

    def given(self, kept: float) -> tuple[float, float]:
        """Return how much of the variance is texture on average, and the standard error of that.

        Both are shares of the variance, given the share of the noise that the denoiser keeps.
        """
        if not self.estimated:
            return 0.0, self.statistical
        texture = float(np.interp(kept, _KEPT, _TEXTURE_ERROR))
        mean = _TEXTURE_MEAN * min(texture, 1.0)
        if self.correlated:
            texture = math.hypot(_TEXTURE_IF_CORRELATED * texture, _CORRELATED_ERROR)
        return mean, math.hypot(self.statistical, texture, _LINE_ERROR * self.signal_dependent)


def error_interval(sums: ErrorSums, level: LevelError, is_network: bool) -> ErrorInterval:
    """Estimate the mean squared error: ``λ²`` times as large in other units, ``λ·y + μ``.

    Parameters
    ----------
    sums
        Over the pixels of an image.
    level
        How well the level of its noise is known.
    is_network
        Whether the denoiser is a trained network.
    """
    stein, variance = sums.stein / sums.pixels, sums.variance / sums.pixels
    if variance == 0:
        return ErrorInterval(max(stein, 0.0), max(stein, 0.0), max(stein, 0.0), stein, 0.0)
    # No denoiser does better than a mean over all pixels.
    tweedie = max(sums.divergence, variance) / sums.pixels
    kept = tweedie / variance
    mean = float(np.interp(kept, _KEPT, _NETWORK_MEAN)) if is_network else 0.0
    spread = float(np.interp(kept, _KEPT, _NETWORK_SPREAD)) if is_network else _OTHER_SPREAD
    chance = math.sqrt(sums.fluctuation + sums.probing) / sums.pixels
    added, error = level.given(kept)
    # Noise that is not the same everywhere, or correlated, is uncertain in more than its level.
    shape = error if level.correlated or level.signal_dependent else 0.0
    chance = math.hypot(chance, 2 * shape * tweedie)
    # The share by which the variance is smaller than assumed, down; the true error, across.
    shares = added + error * np.linspace(-6, 6, 241) if error > 0 else np.zeros(1)
    shares = shares[(shares > -2) & (shares < 0.95)][:, None]
    # Nothing is to be finer than the grids are.
    chance = math.hypot(chance, error / 20 * (variance - 2 * tweedie), 1e-3 * tweedie)
    near = np.maximum(stein + chance * np.linspace(-5, 5, 501), 1e-3 * tweedie)
    logs = math.log(tweedie) + mean + spread * np.linspace(-5, 5, 501)
    logs = np.unique(np.concatenate([logs, np.log(near)]))
    mse = np.exp(logs)
    of_level = (
        -(_TAILS + 1) / 2 * np.log1p(np.square((shares - added) / max(error, 1e-12)) / _TAILS)
    )
    prior = -np.square((logs - math.log(tweedie) - mean - np.log(1 - shares)) / spread) / 2
    shifted = stein + shares * (variance - 2 * tweedie)
    joint = of_level + prior - np.square((shifted - mse) / chance) / 2
    density = np.exp(joint - joint.max()).sum(0) * np.gradient(logs)
    cumulative = np.cumsum(density) / density.sum()
    tail = (1 - CONFIDENCE) / 2
    low, middle, high = (float(np.interp(q, cumulative, mse)) for q in (tail, 0.5, 1 - tail))
    return _shifted(ErrorInterval(middle, low, high, stein, tweedie), *level.processed)


def _shifted(interval: ErrorInterval, mean: float, spread: float) -> ErrorInterval:
    """Add a part of this mean and spread to the logarithm of the error."""
    added = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread
    mse = interval.mse * math.exp(mean)
    below = math.hypot(math.log(interval.mse / interval.low), added)
    above = math.hypot(math.log(interval.high / interval.mse), added)
    return replace(interval, mse=mse, low=mse * math.exp(-below), high=mse * math.exp(above))
