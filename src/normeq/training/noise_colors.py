"""Correlated noise for training: white noise behind smoothing filters of many shapes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normeq.noise import autocorrelation_of_kernel, correlation_length
from normeq.training.samples import Floats

Lengths = tuple[float, float]

# Of noise of random colour, shares whose kernel has long tails, and which is partly white; the
# most that is white of the latter, as a share of the variance.
_LONG_TAILS = 0.25
_PARTLY_WHITE = 0.3
_MOST_WHITE = 0.5
# Widths in pixels of far-reaching noise, along streaks and across them; the shares of it that are
# clouds and ripples; periods of ripples in pixels; its variance beside that of the rest.
_FAR_WIDTHS = (2.0, 5.0)
_STREAK_WIDTHS = (0.3, 1.2)
_CLOUDS = 0.2
_RIPPLES = 0.3
_PERIODS = (3.0, 9.0)
_FAR_VARIANCE = (0.03, 0.4)


def random_colored_noise(
    shape: tuple[int, ...], limits: tuple[float, float], rng: np.random.Generator
) -> tuple[Floats, Lengths]:
    """Draw noise of random colour, of unit variance, and its lengths.

    Parameters
    ----------
    shape
        The shape ``(C, H, W)`` of the noise, which is periodic.
    limits
        Smallest and largest width of the kernels, in pixels.
    rng
        Source of randomness.
    """
    y, x = rng.uniform(*limits, 2)
    widths = (y, x) if rng.integers(2) else (y, y)
    kernels = [_kernel(width, rng.random() < _LONG_TAILS) for width in widths]
    white = rng.uniform(0, _MOST_WHITE) if rng.random() < _PARTLY_WHITE else 0.0
    return _filtered(shape, kernels, white, rng)


def colored_noise(
    shape: tuple[int, ...], widths: tuple[float, float], rng: np.random.Generator
) -> tuple[Floats, Lengths]:
    """Draw white noise smoothed by a Gaussian kernel, of unit variance, and its lengths.

    Parameters
    ----------
    shape
        The shape ``(C, H, W)`` of the noise, which is periodic.
    widths
        Standard deviations of the kernel along Y and X, in pixels.
    rng
        Source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> drawn, lengths = colored_noise((1, 256, 256), (1.0, 0.3), np.random.default_rng(0))
    >>> print(f"{drawn.std():.1f}", [f"{length:.1f}" for length in lengths])
    1.0 ['1.3', '0.0']
    """
    return _filtered(shape, [_kernel(width, False) for width in widths], 0.0, rng)


def far_reaching_noise(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw a weak part of noise that reaches far, which estimates take for the signal.

    Mostly streaks down and across, as sensors and processing leave them; else clouds or ripples.
    Beside noise of unit variance it has a variance of 0.03 to 0.4.
    """
    across, down = rng.uniform(*_FAR_WIDTHS, 2)
    thin = rng.uniform(*_STREAK_WIDTHS, 2)
    level = np.float32(math.sqrt(rng.uniform(*_FAR_VARIANCE)))
    which = rng.random()
    if which < _CLOUDS:
        return level * colored_noise(shape, (down, across), rng)[0]
    if which < _CLOUDS + _RIPPLES:
        return level * _ripples(shape, down, rng)
    angle = rng.uniform(0, math.pi / 2)
    rows, columns = (
        colored_noise(shape, widths, rng)[0] for widths in ((thin[0], across), (down, thin[1]))
    )
    streaks: Floats = np.float32(math.cos(angle)) * rows + np.float32(math.sin(angle)) * columns
    return level * streaks


def _ripples(shape: tuple[int, ...], width: float, rng: np.random.Generator) -> Floats:
    """Draw noise around one frequency, of any direction: waves that last for about a width."""
    angle, period = rng.uniform(0, math.pi), rng.uniform(*_PERIODS)
    down, across = math.sin(angle) / period, math.cos(angle) / period
    rows, columns = np.fft.fftfreq(shape[1])[:, None], np.fft.rfftfreq(shape[2])
    response = sum(
        np.exp(
            -2
            * (math.pi * width) ** 2
            * ((rows - sign * down) ** 2 + (columns - sign * across) ** 2)
        )
        for sign in (1, -1)
    )
    spectrum = np.fft.rfft2(rng.standard_normal(shape, dtype=np.float32)) * response
    drawn = np.fft.irfft2(spectrum, shape[1:])
    unit: Floats = (drawn / drawn.std()).astype(np.float32)
    return unit


def interpolated_noise(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw noise on every other pixel of both axes, interpolated linearly, of unit variance."""
    row, column = rng.integers(2, size=2)
    drawn = np.zeros(shape, np.float32)
    sampled = drawn[:, row::2, column::2]
    sampled[...] = rng.standard_normal(sampled.shape, dtype=np.float32)
    for axis in (1, 2):
        drawn = ndimage.convolve1d(drawn, np.array([0.5, 1.0, 0.5], np.float32), axis, mode="wrap")
    # Of four pixels one is drawn, two are means of two, one of four: a mean variance of 9/16.
    unit: Floats = drawn / np.float32(0.75)
    return unit


def _filtered(
    shape: tuple[int, ...], kernels: list[Floats], white: float, rng: np.random.Generator
) -> tuple[Floats, Lengths]:
    """Draw noise of which a share is white, and the rest filtered by a kernel for each axis."""
    drawn = rng.standard_normal(shape, dtype=np.float32)
    for axis, kernel in zip((1, 2), kernels, strict=True):
        drawn = ndimage.convolve1d(drawn, kernel / np.linalg.norm(kernel), axis, mode="wrap")
    if white:
        independent = rng.standard_normal(shape, dtype=np.float32)
        drawn = (
            np.float32(math.sqrt(1 - white)) * drawn + np.float32(math.sqrt(white)) * independent
        )
    y, x = (correlation_length(_autocorrelation(kernel, white)) for kernel in kernels)
    return drawn, (y, x)


def _kernel(width: float, long_tails: bool) -> Floats:
    """Return a Gaussian kernel, or a two-sided exponential of the same standard deviation."""
    reach = math.ceil((5 if long_tails else 3.5) * width)
    distance = np.abs(np.arange(-reach, reach + 1)) / width
    exponent = math.sqrt(2) * distance if long_tails else distance**2 / 2
    kernel: Floats = np.exp(-exponent).astype(np.float32)
    return kernel


def _autocorrelation(kernel: Floats, white: float) -> NDArray[np.float64]:
    rho = (1 - white) * autocorrelation_of_kernel(kernel, 0)
    rho[0] = 1.0
    return rho
