"""How far noise is correlated: the autocorrelation along an axis, and its length in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

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


@dataclass(frozen=True)
class Correlation:
    """How the noise of a pixel is related to that of its neighbours; white by default.

    Examples
    --------
    >>> from normeq.noise import Correlation
    >>> blurred = Correlation(((1.0, 0.5), (0.2, 0.1)))
    >>> blurred.rows, blurred.columns
    (0.2, 0.5)
    >>> print(blurred.describe())
    correlated (length 0.2 pixels down, 0.5 across)

    Parameters
    ----------
    autocorrelation
        ``ρ[i][j]`` for pixels that are ``i`` rows and ``j`` columns apart, averaged over both
        diagonals; ``ρ[0][0] = 1``.
    error
        Standard error of the entries.
    """

    autocorrelation: tuple[tuple[float, ...], ...] = ((1.0,),)
    error: float = 0.0

    @property
    def rows(self) -> float:
        """Length down the rows, in pixels; see `correlation_length`."""
        return correlation_length([row[0] for row in self.autocorrelation])

    @property
    def columns(self) -> float:
        """Length across the columns, in pixels."""
        return correlation_length(self.autocorrelation[0])

    @property
    def is_white(self) -> bool:
        """Whether neighbouring pixels have independent noise."""
        return self.rows == 0 and self.columns == 0

    def describe(self) -> str:
        """Say in words how far the noise is correlated."""
        if self.is_white:
            return "white"
        return f"correlated (length {self.rows:.2g} pixels down, {self.columns:.2g} across)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, for JSON."""
        return {
            "autocorrelation": [list(row) for row in self.autocorrelation],
            "error": self.error,
            "rows": self.rows,
            "columns": self.columns,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the correlation that `to_dict` described."""
        table = tuple(tuple(float(rho) for rho in row) for row in data["autocorrelation"])
        return cls(table, float(data["error"]))


WHITE = Correlation()


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
