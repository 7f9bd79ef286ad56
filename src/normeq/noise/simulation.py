"""Drawing noise, reproducibly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.errors import InputError, UsageError

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
            f"the image holds {expected.min():g}, and photon counts cannot be negative; "
            "subtract its offset first."
        )
    counts = rng.poisson(expected / gain)
    return gain * counts + sigma * rng.standard_normal(expected.shape)
