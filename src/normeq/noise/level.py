"""The noise level of an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.errors import InputError

# Estimation. The response to second differences along rows and columns vanishes wherever the
# image is locally a plane; that to unit white noise has standard deviation 6.
_RESPONSE_TO_NOISE = 6.0
_BLOCK = 16
_QUIET = 0.1
# The quietest tenth of the blocks is quieter than the average even in pure noise, by this much
# (measured on white Gaussian noise, on planes of 130 to 2050 pixels a side, within 0.5 %).
_QUIET_SHARE = 0.893


def estimate_sigma(image: ArrayLike) -> float | NDArray[np.float64]:
    """Estimate the noise of each plane: ``estimate(λ·y + μ) = |λ| · estimate(y)``.

    The image's second differences, measured in blocks of 16 x 16 pixels of which the quietest
    tenth decides: edges and texture elsewhere do not count. Areas of one constant value
    (saturated, masked, padded) are left out; an image of nothing else has no noise. Where the
    noise varies, the estimate is that of the quieter parts.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import estimate_sigma
    >>> ramp = np.add.outer(np.arange(256.0), np.arange(256.0))
    >>> noisy = ramp + 5.0 * np.random.default_rng(0).standard_normal(ramp.shape)
    >>> abs(estimate_sigma(noisy) - 5.0) < 0.2
    True

    Parameters
    ----------
    image
        Finite values of shape ``(..., height, width)``, at least 3 x 3. A single plane gives a
        number, a stack an array of the leading shape, as `normeq.denoise` takes it.
    """
    values = np.asarray(image, dtype=np.float64)
    if values.ndim < 2 or min(values.shape[-2:]) < 3:
        raise InputError(
            f"noise is estimated on planes of at least 3 x 3 pixels, not on shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InputError("the image holds NaN or infinite values; mask or fill them first.")
    planes = values.reshape(-1, *values.shape[-2:])
    levels = np.array([_sigma_of_plane(plane) for plane in planes])
    return float(levels[0]) if values.ndim == 2 else levels.reshape(values.shape[:-2])


def _sigma_of_plane(plane: NDArray[np.float64]) -> float:
    rows = plane[:-2] - 2 * plane[1:-1] + plane[2:]
    response = (rows[:, :-2] - 2 * rows[:, 1:-1] + rows[:, 2:]) / _RESPONSE_TO_NOISE
    alive = ~_flat(plane)
    energy, counts = _block_sums(response**2), _block_sums(alive)
    usable = counts >= _BLOCK**2 / 2
    if usable.sum() < 1 / _QUIET:  # too few blocks to choose from: all pixels, edges and all
        return float(np.sqrt(np.mean(response[alive] ** 2))) if alive.any() else 0.0
    levels = np.sqrt(energy[usable] / counts[usable])
    return float(np.quantile(levels, _QUIET) / _QUIET_SHARE)


def _flat(plane: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say for each pixel but the outermost whether its 3 x 3 neighbourhood is constant."""
    across = plane[:, 1:] == plane[:, :-1]
    row = across[:, 1:] & across[:, :-1]
    down = (plane[1:] == plane[:-1])[:, 1:-1]
    flat: NDArray[np.bool_] = row[:-2] & row[1:-1] & row[2:] & down[1:] & down[:-1]
    return flat


def _block_sums(values: NDArray[Any]) -> NDArray[np.float64]:
    """Sum over every whole block, dropping what is left over at the far edges."""
    height, width = (extent // _BLOCK for extent in values.shape)
    whole = values[: height * _BLOCK, : width * _BLOCK].astype(np.float64)
    sums: NDArray[np.float64] = whole.reshape(height, _BLOCK, width, _BLOCK).sum((1, 3))
    return sums
