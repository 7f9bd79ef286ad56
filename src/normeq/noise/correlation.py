"""How far noise is correlated: the autocorrelation along an axis, and its length in pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.errors import UsageError

#: Autocorrelation below which two pixels count as independent.
INDEPENDENT = 0.05


def correlation_length(autocorrelation: ArrayLike) -> float:
    """Return ``Σ ρ(lag)`` over the lags 1, 2, ... before ``ρ`` first falls below 0.05.

    White noise has length 0. A network that is told the correlation gets ``σ · (1 + length)``.

    Examples
    --------
    >>> from normeq.noise import correlation_length
    >>> correlation_length([1.0, 0.0, 0.0])
    0.0
    >>> correlation_length([1.0, 0.5, 0.25, 0.01, 0.5])
    0.75

    Parameters
    ----------
    autocorrelation
        ``ρ`` along one axis, at the lags 0, 1, 2, ...; ``ρ(0) = 1``.
    """
    rho = np.asarray(autocorrelation, dtype=np.float64)
    if rho.ndim != 1 or rho.size == 0 or abs(rho[0] - 1.0) > 1e-6:
        raise UsageError(
            "an autocorrelation is a sequence that starts with 1, the value at lag 0; "
            f"this one has shape {rho.shape} and starts with {rho.flat[0] if rho.size else None}."
        )
    later = rho[1:]
    independent = np.flatnonzero(~(later >= INDEPENDENT))
    return float(later[: independent[0] if independent.size else None].sum())


def autocorrelation_of_kernel(kernel: ArrayLike, axis: int) -> NDArray[np.float64]:
    """Return ``ρ`` along an axis of white noise filtered by `kernel`, lags 0 to its extent - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.noise import autocorrelation_of_kernel
    >>> autocorrelation_of_kernel(np.ones((1, 2)), axis=1)
    array([1. , 0.5])

    Parameters
    ----------
    kernel
        Weights of a linear filter, of any number of axes; not all zero.
    axis
        The axis of the kernel along which the lag is taken.
    """
    weights = np.moveaxis(np.asarray(kernel, dtype=np.float64), axis, 0)
    extent = len(weights)
    products = np.array(
        [np.vdot(weights[: extent - lag], weights[lag:]) for lag in range(extent)], np.float64
    )
    rho: NDArray[np.float64] = products / products[0]
    return rho
