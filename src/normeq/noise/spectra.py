"""Spectra of small blocks, and the linear law that ties them to the noise's autocorrelation.

Each block is transformed twice. Cosine transforms of the bare block have nearly independent
coefficients, so some of them can choose quiet blocks while others are measured. Fourier transforms
under a smooth window have no leakage: a bright structure stays out of the high frequencies, in
which the level of the noise is measured.

Both are split into two halves: what stays the same when a block is turned by half a turn, and what
changes its sign. In noise of any correlation the halves are independent, so that blocks chosen by
one half are neither too quiet nor too loud in the other.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Floats = NDArray[np.float64]

#: Side of a block, and the distance from one to the next.
BLOCK = 16
STEP = 8
#: Lags, in rows and columns, up to which noise may be correlated.
REACH = 6

_TAPER = np.sin(np.pi * (np.arange(BLOCK) + 0.5) / BLOCK) ** 2
_TAPER /= np.sqrt((_TAPER**2).sum())
_WINDOW = np.outer(_TAPER, _TAPER)

#: How many pixels a window is worth, for a mean of squares of which a few are large.
PIXELS = 1.0 / float((_WINDOW**4).sum())

# Frequencies as fractions of the highest; each Fourier coefficient but those of the first and
# the last column stands for its mirror image, too.
_COSINE = np.arange(BLOCK) / BLOCK
_FOURIER_DOWN, _FOURIER_ACROSS = 2 * np.abs(fft.fftfreq(BLOCK)), 2 * fft.rfftfreq(BLOCK)
COSINE_FREQUENCY = np.hypot(_COSINE[:, None], _COSINE).ravel()
FOURIER_FREQUENCY = np.hypot(_FOURIER_DOWN[:, None], _FOURIER_ACROSS).ravel()
#: How many coefficients of the whole plane each stored Fourier coefficient stands for.
MULTIPLICITY = np.tile(np.where(np.isin(_FOURIER_ACROSS, (0.0, 1.0)), 1.0, 2.0), BLOCK)
#: Coefficients without the frequencies of pure rows and columns, where gradients are.
COSINE_INNER = np.outer(_COSINE > 0, _COSINE > 0).ravel()
_ABOVE_TAPER = 2.5 / BLOCK
FOURIER_INNER = np.outer(_FOURIER_DOWN > _ABOVE_TAPER, _FOURIER_ACROSS > _ABOVE_TAPER).ravel()
#: Which half each cosine coefficient belongs to: 0 keeps its sign under half a turn, 1 changes it.
COSINE_HALF = np.add.outer(np.arange(BLOCK), np.arange(BLOCK)).ravel() % 2
# Position of each pixel, from the centre of its block; turns the phase of Fourier coefficients.
_POSITION = np.arange(BLOCK) - (BLOCK - 1) / 2
_TURN = np.exp(-2j * np.pi * _POSITION[0] * np.add.outer(fft.fftfreq(BLOCK), fft.rfftfreq(BLOCK)))


def cut(plane: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the overlapping blocks of a plane, ``(rows of blocks, columns, BLOCK, BLOCK)``."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (BLOCK, BLOCK))
    return windows[::STEP, ::STEP]


def window_mean(blocks: Floats) -> Floats:
    """Return the level of each block, as its windowed spectrum sees it."""
    means: Floats = np.einsum("nij,ij->n", blocks, _WINDOW**2)
    return means


def cosine_power(blocks: Floats) -> Floats:
    """Return the squared cosine coefficients of each block: 1 on average for unit white noise."""
    power: Floats = fft.dctn(blocks, axes=(1, 2), norm="ortho") ** 2
    return power.reshape(len(blocks), -1)


def fourier_power(blocks: Floats) -> Floats:
    """Return the squared windowed coefficients, ``(blocks, halves, coefficients)``.

    The mean over the halves is 1 on average for unit white noise.
    """
    centred = blocks - window_mean(blocks)[:, None, None]
    coefficients = fft.rfft2(centred * _WINDOW, axes=(1, 2)) * _TURN
    halves = np.stack([coefficients.real, coefficients.imag], 1)
    power: Floats = 2.0 * halves**2
    return power.reshape(len(blocks), 2, -1)


def expected_cosine(autocorrelation: Floats) -> Floats:
    """Return the mean cosine power of noise of this autocorrelation."""
    return _cosine_law() @ autocorrelation.ravel()


def expected_fourier(autocorrelation: Floats) -> Floats:
    """Return the mean windowed Fourier power of noise of this autocorrelation, half by half."""
    return _fourier_law() @ autocorrelation.ravel()


def autocovariance(cosine: Floats, weights: Floats) -> Floats:
    """Fit the autocovariance, ``(REACH + 1, REACH + 1)``, whose mean cosine power is `cosine`."""
    law = _cosine_law()
    normal = law.T @ (weights[:, None] * law)
    solution = np.linalg.solve(normal, law.T @ (weights * cosine))
    return solution.astype(np.float64).reshape(REACH + 1, REACH + 1)


def degrees_of_freedom(weights: Floats) -> float:
    """Return how many independent squares a weighted mean of Fourier power is worth.

    Coefficients under a window are correlated with their neighbours.
    """
    half = weights.reshape(BLOCK, -1)
    whole = np.concatenate([half, np.roll(half[::-1], 1, 0)[:, -2:0:-1]], axis=1)
    leakage = np.abs(fft.fft(_TAPER**2)) ** 2
    near = fft.ifft2(fft.fft2(whole) * fft.fft2(np.outer(leakage, leakage))).real
    return float(whole.sum() ** 2 / (whole * near).sum())


@lru_cache
def _cosine_law() -> Floats:
    law = _law_of_basis(fft.dct(np.eye(BLOCK), axis=0, norm="ortho"))
    return _outer(law, law)


@lru_cache
def _fourier_law() -> Floats:
    """Return the law of each half: products of two cosines or two sines, and of one of each."""

    def waves(frequencies: Floats) -> tuple[Floats, Floats]:
        angles = np.pi * np.outer(frequencies, _POSITION)
        return _law_of_basis(_TAPER * np.cos(angles)), _law_of_basis(_TAPER * np.sin(angles))

    (cos_down, sin_down), (cos_across, sin_across) = waves(_FOURIER_DOWN), waves(_FOURIER_ACROSS)
    same = _outer(cos_down, cos_across) + _outer(sin_down, sin_across)
    mixed = _outer(cos_down, sin_across) + _outer(sin_down, cos_across)
    return 2.0 * np.stack([same, mixed])


def _law_of_basis(basis: Floats) -> Floats:
    """Return how each vector's mean power depends on the autocorrelation: a row for each vector."""
    products = [_both(lag) * (basis[:, : BLOCK - lag] * basis[:, lag:]).sum(1) for lag in _LAGS]
    return np.stack(products, 1)


_LAGS = range(REACH + 1)


def _both(lag: int) -> int:
    """Count a lag and its opposite."""
    return 1 if lag == 0 else 2


def _outer(down: Floats, across: Floats) -> Floats:
    """Combine the laws of two axes: one row per coefficient, one column per pair of lags."""
    joint: Floats = np.einsum("ua,vb->uvab", down, across)
    return joint.reshape(len(down) * len(across), -1)
