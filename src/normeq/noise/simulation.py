"""Drawing noise, reproducibly."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from normeq.errors import InputError, UsageError
from normeq.noise.correlation import Correlation

_Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[Any]]


def _gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    return rng.standard_normal(shape, dtype=np.float32)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)


def _laplace(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    return rng.laplace(0.0, np.sqrt(0.5), shape)


def _rayleigh(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    return rng.rayleigh(np.sqrt(2 / (4 - np.pi)), shape)


_UNIT_NOISE: dict[str, _Draw] = {
    "gaussian": _gaussian,
    "uniform": _uniform,
    "laplace": _laplace,
    "rayleigh": _rayleigh,
}
KINDS = tuple(_UNIT_NOISE)


def draw(
    kind: str, shape: tuple[int, ...], sigma: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw noise of standard deviation ``sigma``: ``std(draw(kind, shape, σ, rng)) = σ``.

    Rayleigh noise is not centred: its mean is ``sqrt(π / (4 - π))``, about 1.91, times sigma.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import draw
    >>> noise = draw("laplace", (256, 256), 10.0, np.random.default_rng(0))
    >>> print(f"{noise.std():.1f}")
    10.0

    Parameters
    ----------
    kind
        Family of the noise, one of `KINDS`; each is closed under scaling, so sigma says everything.
    shape
        Shape of the array to draw.
    sigma
        Standard deviation, in the units of the image.
    rng
        Source of randomness.
    """
    if kind not in _UNIT_NOISE:
        raise UsageError(f"noise {kind!r} is unknown; choose one of {', '.join(KINDS)}.")
    noise = _UNIT_NOISE[kind](rng, shape).astype(np.float32, copy=False)
    noise *= np.float32(sigma)
    return noise


def poisson_gaussian(
    image: ArrayLike, gain: float, sigma: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return ``gain · Poisson(image / gain) + N(0, σ²)``: variance ``gain · image + σ²``.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import poisson_gaussian
    >>> noisy = poisson_gaussian(np.full((256, 256), 100.0), 4.0, 15.0, np.random.default_rng(0))
    >>> print(f"{noisy.mean():.0f} {noisy.std():.0f}")
    100 25

    Parameters
    ----------
    image
        Expected values, none negative.
    gain
        Grey levels per photo-electron, positive.
    sigma
        Standard deviation of the Gaussian part, in the units of the image.
    rng
        Source of randomness.
    """
    expected = np.asarray(image, dtype=np.float64)
    if gain <= 0:
        raise UsageError(f"gain is {gain}; it must be positive.")
    if expected.size and expected.min() < 0:
        raise InputError(
            f"the image contains {expected.min():g}, and photon counts cannot be negative; "
            "subtract its offset first."
        )
    counts = rng.poisson(expected / gain)
    return gain * counts + sigma * rng.standard_normal(expected.shape)


def coloured(white: ArrayLike, correlation: Correlation) -> NDArray[np.float64]:
    """Filter white noise of unit variance so that it has a correlation, and unit variance still.

    The planes are taken as periodic. White noise comes back as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import Correlation, coloured
    >>> white = np.random.default_rng(0).standard_normal((256, 256))
    >>> noise = coloured(white, Correlation(((1.0, 0.5), (0.0, 0.0))))
    >>> print(f"{noise.std():.1f} {np.mean(noise[:, 1:] * noise[:, :-1]):.1f}")
    1.0 0.5

    Parameters
    ----------
    white
        Shape ``(..., height, width)``.
    correlation
        Of the result. Where its table is that of no noise, as an estimated one may be, the
        negative part of its spectrum counts as zero.
    """
    values = np.asarray(white, dtype=np.float64)
    if correlation.is_white:
        return values
    height, width = values.shape[-2:]
    rho = np.zeros((height, width))
    for row, entries in enumerate(correlation.autocorrelation[: height // 2 + 1]):
        for column, entry in enumerate(entries[: width // 2 + 1]):
            for down, across in itertools.product({row, -row}, {column, -column}):
                rho[down, across] = entry
    spectrum = np.maximum(fft.rfft2(rho).real, 0.0)
    both_sides = np.full(spectrum.shape[-1], 2.0)
    both_sides[[0, -1] if width % 2 == 0 else [0]] = 1.0
    gain = np.sqrt(spectrum / ((spectrum * both_sides).sum() / (height * width)))
    filtered: NDArray[np.float64] = fft.irfft2(fft.rfft2(values) * gain, s=(height, width))
    return filtered
