"""Stein's unbiased estimate of the squared error of a denoised image, without ground truth.

For ``y = x + n`` with Gaussian noise of covariance ``Σ``,

``E |f(y) - x|² = E [ |f(y) - y|² - tr Σ + 2 tr(Σ J) ]``

where ``J`` is the derivative of the denoiser ``f`` at ``y``. The last trace is estimated by probes:
``tr(Σ J) = E [ p · J p ]`` for any ``p`` of covariance ``Σ``, and ``J p`` is the change of the
output when a little of ``p`` is added to the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normeq.errors import UsageError
from normeq.noise import Correlation, coloured
from normeq.noise.correlation import WHITE

Floats = NDArray[np.float64]

#: How much of the noise's standard deviation a probe changes the image by.
STEP = 0.1
# Errors of neighbouring pixels are related; those of blocks of this side hardly are.
_BLOCK = 16


@dataclass(frozen=True)
class RiskEstimate:
    """A mean squared error and its standard error, in squared units of the image.

    Attributes
    ----------
    mse
        The estimate. It is unbiased, so it can be negative where the true error is close to zero.
    error
        Its standard error, by the spread from block to block.
    """

    mse: float
    error: float

    @property
    def rmse(self) -> float:
        """The root of the estimate; 0 where that is negative."""
        return math.sqrt(max(self.mse, 0.0))


def probe(
    shape: tuple[int, ...], rng: np.random.Generator, correlation: Correlation = WHITE
) -> Floats:
    """Draw a probe of unit variance with the correlation of the noise.

    A white probe has the values 1 and -1: no other has estimates of a trace that vary less.

    Parameters
    ----------
    shape
        Of the image, planes last.
    rng
        Source of randomness.
    correlation
        Of the noise.
    """
    signs = rng.integers(0, 2, shape, dtype=np.int8).astype(np.float64) * 2 - 1
    return coloured(signs, correlation)


def risk_terms(
    noisy: Floats,
    denoised: Floats,
    perturbed: Floats,
    drawn: Floats,
    sigma: float | Floats,
    step: float = STEP,
) -> Floats:
    """Return the terms of every pixel, whose mean estimates the mean squared error.

    ``(denoised - noisy)² - σ² + 2·σ·drawn·(perturbed - denoised) / step``; in other units,
    ``λ·y + μ``, the terms are ``λ²`` times as large.

    Parameters
    ----------
    noisy, denoised
        The image and what the denoiser makes of it.
    perturbed
        What it makes of ``noisy + step · sigma · drawn``.
    drawn
        A `probe`.
    sigma
        Standard deviation of the noise, for all pixels or for each.
    step
        Share of sigma by which the image was changed.
    """
    divergence = sigma * drawn * (perturbed - denoised) / step
    terms: Floats = (denoised - noisy) ** 2 - np.square(sigma) + 2 * divergence
    return terms


def mean_risk(terms: Floats) -> RiskEstimate:
    """Return the mean of terms of pixels ``(..., H, W)`` and its standard error.

    For the difference between two denoisers, give the difference of their terms, computed with the
    same probe: most of the fluctuation cancels.

    Examples
    --------
    >>> import numpy as np
    >>> estimate = mean_risk(np.random.default_rng(0).normal(3.0, 1.0, (256, 256)))
    >>> round(estimate.mse, 1), round(256 * estimate.error)
    (3.0, 1)
    """
    sums, counts = _block_sums(np.nan_to_num(terms)), _block_sums(np.isfinite(terms) * 1.0)
    total = float(counts.sum())
    if not total:
        raise UsageError("no pixel has a value, so no error can be estimated.")
    mean = float(sums.sum()) / total
    deviations = sums - mean * counts
    blocks = int(np.count_nonzero(counts))
    if blocks < 2:
        return RiskEstimate(mean, math.inf)
    variance = float(np.square(deviations).sum()) * blocks / (blocks - 1)
    return RiskEstimate(mean, math.sqrt(variance) / total)


def estimate_risk(
    denoise: Callable[[Floats], Floats],
    noisy: Floats,
    sigma: float | Floats,
    *,
    correlation: Correlation = WHITE,
    probes: int = 1,
    seed: int = 0,
) -> RiskEstimate:
    """Estimate the mean squared error of ``denoise(noisy)``.

    ``estimate_risk(f, λ·y + μ, λ·σ)`` has ``λ²`` times the value, for an equivariant ``f``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import ndimage
    >>> ramp = np.add.outer(np.arange(256.0), np.arange(256.0))
    >>> noisy = ramp + 5 * np.random.default_rng(0).standard_normal(ramp.shape)
    >>> smooth = lambda image: ndimage.uniform_filter(image, 3, mode="mirror")
    >>> true = np.mean((smooth(noisy) - ramp) ** 2)
    >>> estimate = estimate_risk(smooth, noisy, 5.0)
    >>> bool(abs(estimate.mse - true) < 3 * estimate.error)
    True

    Parameters
    ----------
    denoise
        A function of an image, as it is used: with its noise level fixed.
    noisy
        The image, or a stack of planes ``(..., H, W)``; pixels without a value are NaN.
    sigma
        Standard deviation of its noise, for all pixels or for each.
    correlation
        Of the noise.
    probes
        How many probes the divergence is averaged over; the denoiser runs once more than that.
    seed
        Of the probes.
    """
    if probes < 1:
        raise UsageError(f"probes is {probes}; it must be at least 1.")
    rng = np.random.default_rng(seed)
    denoised = denoise(noisy)
    terms = np.zeros(noisy.shape)
    for _ in range(probes):
        drawn = probe(noisy.shape, rng, correlation)
        perturbed = denoise(noisy + STEP * sigma * drawn)
        terms += risk_terms(noisy, denoised, perturbed, drawn, sigma) / probes
    return mean_risk(terms)


def _block_sums(values: Floats) -> Floats:
    """Sum over blocks of each plane; those at the right and lower border may be smaller."""
    rows, columns = (np.arange(0, extent, _BLOCK) for extent in values.shape[-2:])
    return np.add.reduceat(np.add.reduceat(values, rows, axis=-2), columns, axis=-1)
