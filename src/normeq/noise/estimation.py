"""The noise of an image, estimated from the image alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.errors import InputError
from normeq.noise import spectra
from normeq.noise.correlation import Correlation
from normeq.noise.model import NoiseModel
from normeq.noise.noise_fit import NoiseFit
from normeq.noise.sampling import Reader, read_regions, reader_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def estimate_noise(
    image: ArrayLike, *, signal_dependent: bool | None = None, cautious: bool = False
) -> NoiseModel:
    """Estimate ``var = gain · y + base`` and the correlation: one model for all planes.

    For ``λ·y + μ`` with ``λ > 0`` the gain is ``λ · gain``, the base
    ``λ² · base - λ · μ · gain``, the correlation the same.

    Texture, hot and dead pixels, values cut off at black or white, constant areas and missing
    pixels (NaN, infinite, masked) are left out. Of a large image, some regions are looked at
    (`sampled_regions`).

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import estimate_noise, poisson_gaussian
    >>> ramp = np.add.outer(np.arange(256.0), np.arange(256.0))
    >>> noisy = poisson_gaussian(ramp, 2.0, 5.0, np.random.default_rng(0))
    >>> model = estimate_noise(noisy)
    >>> abs(model.gain - 2.0) < 0.2, model.correlation.is_white
    (True, True)

    Parameters
    ----------
    image
        Shape ``(..., height, width)``, at least 3 x 3; anything that is indexed like an array.
    signal_dependent
        Whether the variance may depend on the signal; None lets the image decide: a gain that
        is not significant is 0.
    cautious
        Whether weak findings that texture could explain do not count: noise less than twice as
        strong in the brightest parts as in the darkest, and correlation that leaves the highest
        frequencies filled and falls slowly with distance, as white noise under texture does.
    """
    return estimate_noise_of(
        *reader_of(image), signal_dependent=signal_dependent, cautious=cautious
    )


def estimate_noise_of(
    read: Reader,
    shape: tuple[int, ...],
    *,
    signal_dependent: bool | None = None,
    cautious: bool = False,
) -> NoiseModel:
    """Estimate the noise of an image that is read in parts.

    Parameters
    ----------
    read
        Returns the pixels of a plane, given its number, its rows and its columns.
    shape
        Of the image, planes last; the planes are numbered in the order of the other axes.
    signal_dependent, cautious
        See `estimate_noise`.
    """
    planes = read_regions(read, shape)
    finite = np.concatenate([plane[np.isfinite(plane)] for plane in planes])
    with np.errstate(over="ignore", invalid="ignore"):
        center, scale = float(finite.mean()), float(finite.std())
    if not np.isfinite(scale):
        raise InputError("the image contains values too large for double precision.")
    if np.ptp(finite) == 0:
        return NoiseModel.uniform(0.0, level=float(finite[0]))
    standard = [(plane - center) / scale for plane in planes]
    model = NoiseFit(standard, (finite - center) / scale).model(signal_dependent, cautious)
    return model.rescaled(scale, center)


def measure_blocks(
    read: Reader, shape: tuple[int, ...], correlation: Correlation
) -> tuple[Floats, Floats, Mask]:
    """Return the level and the variance of each block, and whether it is quiet for its level.

    What the variance of `estimate_noise_of` is fitted to: the quiet blocks, without those far
    above the line. Nothing is returned for an image that is too small or too constant for blocks.

    Parameters
    ----------
    read, shape
        See `estimate_noise_of`.
    correlation
        Of the noise; the variance of a block is that of noise so correlated.
    """
    planes = read_regions(read, shape)
    fit = NoiseFit(planes, np.concatenate([plane[np.isfinite(plane)] for plane in planes]))
    if not len(fit.levels):
        return np.empty(0), np.empty(0), np.empty(0, bool)
    rho = np.zeros((spectra.REACH + 1, spectra.REACH + 1))
    known = np.array(correlation.autocorrelation)[: len(rho), : len(rho)]
    rho[: known.shape[0], : known.shape[1]] = known
    return fit.levels, fit.energies(rho), fit.quiet_at_each_level(rho)


def estimate_sigma(image: ArrayLike) -> float | Floats:
    """Estimate the noise of each plane: ``estimate(λ·y + μ) = λ · estimate(y)`` for ``λ > 0``.

    The root of the mean variance that `estimate_noise` finds in the plane.

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
        Shape ``(..., height, width)``, at least 3 x 3. A single plane gives a number, a stack
        an array of the leading shape, as `normeq.denoise` takes it.
    """
    values = np.asanyarray(image)
    if values.ndim <= 2:
        return estimate_noise(values).mean_sigma
    leading = values.shape[:-2]
    levels = [estimate_noise(values[index]).mean_sigma for index in np.ndindex(*leading)]
    return np.array(levels).reshape(leading)
