"""Random fields of unit variance that depend on the place of a pixel alone.

Whoever asks for a part of a field gets the same values, however an image is cut into tiles.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from normeq.noise.correlation import Correlation
from normeq.noise.simulation import coloured

Floats = NDArray[np.float64]

# Signs are drawn in blocks of this side, 64 bits a row.
_BLOCK = 64
# Side of the grid on which the filter of correlated noise is computed, and how far the filter
# reaches to each side.
_GRID = 64
_REACH = 12


def unit_probe(
    key: tuple[int, ...], rows: slice, columns: slice, correlation: Correlation
) -> Floats:
    """Return some pixels of a random field: ``E[n] = 0``, ``E[n(p)·n(q)] = ρ(p - q)``.

    White fields are made of the signs +1 and -1, from which quadratic forms are known more
    exactly than from normal numbers; correlated ones are such signs behind a filter.

    Examples
    --------
    >>> from normeq.noise.correlation import WHITE
    >>> whole = unit_probe((7,), slice(0, 100), slice(0, 100), WHITE)
    >>> part = unit_probe((7,), slice(60, 70), slice(50, 90), WHITE)
    >>> bool((part == whole[60:70, 50:90]).all())
    True

    Parameters
    ----------
    key
        Numbers that name the field, none negative.
    rows, columns
        Which pixels.
    correlation
        How neighbouring pixels are related.
    """
    if correlation.is_white:
        return _signs(key, rows, columns)
    from scipy.signal import fftconvolve  # slow to import, and most images need no error bars

    down, across = (slice(side.start - _REACH, side.stop + _REACH) for side in (rows, columns))
    kernel = _kernel(correlation)
    field: Floats = fftconvolve(_signs(key, down, across), kernel, mode="valid")
    return field


def _signs(key: tuple[int, ...], rows: slice, columns: slice) -> Floats:
    """Return +1 or -1 for each pixel, also for pixels just outside of an image."""
    down, across = (
        range(side.start // _BLOCK, -(-side.stop // _BLOCK)) for side in (rows, columns)
    )
    blocks = np.block([[_block(key, row, column) for column in across] for row in down])
    top, left = down.start * _BLOCK, across.start * _BLOCK
    part = blocks[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    signs: Floats = 2.0 * part - 1.0
    return signs


def _block(key: tuple[int, ...], row: int, column: int) -> NDArray[np.uint8]:
    # Blocks are counted from -1: a filter needs pixels beside the image.
    seed = np.random.SeedSequence((*key, row + 1, column + 1))
    words = np.random.PCG64(seed).random_raw(_BLOCK).astype("<u8")
    return np.unpackbits(words.view(np.uint8)).reshape(_BLOCK, _BLOCK)


@lru_cache(maxsize=32)
def _kernel(correlation: Correlation) -> Floats:
    """Return the symmetric filter that gives white noise a correlation."""
    impulse = np.zeros((_GRID, _GRID))
    impulse[_GRID // 2, _GRID // 2] = 1.0
    middle = slice(_GRID // 2 - _REACH, _GRID // 2 + _REACH + 1)
    kernel = coloured(impulse, correlation)[middle, middle]
    unit: Floats = kernel / np.sqrt((kernel**2).sum())
    return unit
