"""Recognising a Bayer mosaic, four interleaved planes of a camera's raw image, without a tag.

In a mosaic of red, green and blue the pixel (i, j) is
``m = L + (-1)^i · A ± (-1)^j · A + (-1)^(i+j) · C`` with ``A = (red - blue) / 4`` and
``C = ±(red + blue - 2·green) / 4``. Rows and columns alternate by the same amount everywhere,
which no other image does: in upsampled ones each alternates by itself, in ones with alternating
gains only one of them does, or both do without the diagonal.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.noise.sampling import Reader, read_regions, reader_of

Floats = NDArray[np.float64]

# Smoothing, in pixels, that leaves of an alternation its local amount; every fourth is looked at.
_SMOOTHING = 4.0
_STEP = 4
_MARGIN = 8
_SMALLEST = 32
_LARGEST = 512
# Frequencies down and across, as fractions of the highest: those of alternating rows, columns and
# diagonals; and those at which no image alternates on purpose, where texture and noise are found.
_ALTERNATIONS = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
_OTHERS = ((0.8, 0.0), (0.0, 0.8), (0.8, 1.0), (1.0, 0.8), (0.8, 0.8))
_FREQUENCIES = (0.0, 0.8, 1.0)
# Thresholds, in powers: above texture by this factor; rows and columns alike to this share; the
# diagonal at least this share of them; a part of the image's variance that rounding does not reach.
_ABOVE_OTHERS = 2.0
_MOST_UNLIKE = 0.2
_LEAST_DIAGONAL = 0.008
_LEAST_POWER = 1e-7


def is_bayer_mosaic(image: ArrayLike) -> bool:
    """Tell whether the planes of an image are Bayer mosaics, in any units.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise.mosaic import is_bayer_mosaic
    >>> rows, columns = np.mgrid[:64, :64]
    >>> red, green, blue = 3.0 + np.sin(rows / 9), 2.0 + np.cos(columns / 9), 1.0
    >>> mosaic = np.where(rows % 2 == columns % 2, np.where(rows % 2 == 0, red, blue), green)
    >>> is_bayer_mosaic(mosaic), is_bayer_mosaic(red)
    (True, False)

    Parameters
    ----------
    image
        Shape ``(..., height, width)``. Planes smaller than 32 x 32 never count as mosaics.
    """
    return is_bayer_mosaic_of(*reader_of(image))


def is_bayer_mosaic_of(read: Reader, shape: tuple[int, ...]) -> bool:
    """Tell whether an image that is read in parts consists of Bayer mosaics.

    Parameters
    ----------
    read, shape
        See `normeq.noise.estimate_noise_of`; the same regions are read.
    """
    if min(shape[-2:]) < _SMALLEST:
        return False

    def from_even(frame: int, rows: slice, columns: slice) -> ArrayLike:
        first = (rows.start + rows.start % 2, columns.start + columns.start % 2)
        return read(frame, slice(first[0], rows.stop), slice(first[1], columns.stop))

    powers = np.sum([_powers(plane) for plane in read_regions(from_even, shape)], axis=0)
    rows, columns, product, diagonal, variance, *others = (float(power) for power in powers)
    unlike = (rows + columns - 2.0 * abs(product)) / max(rows + columns, np.finfo(float).tiny)
    weaker = min(rows, columns)
    return (
        weaker > _ABOVE_OTHERS * max(others)
        and weaker > _LEAST_POWER * variance
        and unlike < _MOST_UNLIKE
        and diagonal > _LEAST_DIAGONAL * (rows + columns) / 2.0
    )


def _powers(plane: Floats) -> Floats:
    """Return sums over a region: of what alternates, of its variance, and of other frequencies."""
    if min(plane.shape) < _SMALLEST:
        return np.zeros(5 + len(_OTHERS))
    plane = plane[_middle(plane.shape[0]), _middle(plane.shape[1])]
    known = np.isfinite(plane)
    mean = float(plane[known].mean()) if known.any() else 0.0
    values = np.where(known, plane - mean, 0.0)
    height, width = values.shape
    down = {frequency: _demodulator(height, frequency) @ values for frequency in _FREQUENCIES}
    rows, columns, diagonal, *others = (
        down[vertical] @ _demodulator(width, horizontal).T
        for vertical, horizontal in (*_ALTERNATIONS, *_OTHERS)
    )
    sums = [(rows**2).sum(), (columns**2).sum(), (rows * columns).sum(), (diagonal**2).sum()]
    return np.array([*sums, values.var() * rows.size, *((amount**2).sum() for amount in others)])


def _middle(length: int) -> slice:
    """Return the middle of a long side, from an even place on."""
    start = max(0, length - _LARGEST) // 4 * 2
    return slice(start, start + _LARGEST)


@lru_cache(maxsize=16)
def _demodulator(length: int, frequency: float) -> Floats:
    """Return the matrix that takes the local amounts of an alternation out of a row of pixels."""
    places = np.arange(length)
    centers = np.arange(_MARGIN, length - _MARGIN, _STEP)
    weights = np.exp(-0.5 * ((places - centers[:, None]) / _SMOOTHING) ** 2)
    weights /= weights.sum(1, keepdims=True)
    # A wave that is not sampled at its crests has half the power.
    loudness = 1.0 if frequency in (0.0, 1.0) else 2.0**0.5
    matrix: Floats = weights * (loudness * np.cos(np.pi * frequency * places))
    return matrix
