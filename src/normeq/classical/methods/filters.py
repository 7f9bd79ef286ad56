"""The elementary filters: blind, and normalization-equivariant because their weights sum to 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from normeq.classical.plane_by_plane import Array, each_plane

__all__ = ["gaussian_filter", "mean_filter", "median_filter"]


def mean_filter(image: Array, *, size: int = 3) -> Array:
    """Average square neighbourhoods: ``f(λy + μ) = λ f(y) + μ``.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units; mirrored at its borders.
    size
        Side of the neighbourhood.

    Examples
    --------
    >>> import numpy as np
    >>> mean_filter(np.eye(3))[1, 1].round(3)
    np.float64(0.333)
    """
    from scipy.ndimage import uniform_filter

    return _filtered(image, lambda plane: uniform_filter(plane, size))


def gaussian_filter(image: Array, *, width: float = 1.0) -> Array:
    """Average with Gaussian weights: ``f(λy + μ) = λ f(y) + μ``.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units; mirrored at its borders.
    width
        Standard deviation of the Gaussian, in pixels.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_filter(np.full((3, 3), 5)).round(6)[0]
    array([5., 5., 5.])
    """
    from scipy.ndimage import gaussian_filter as scipy_gaussian_filter

    return _filtered(image, lambda plane: scipy_gaussian_filter(plane, width))


def median_filter(image: Array, *, size: int = 3) -> Array:
    """Take the median of square neighbourhoods: ``f(λy + μ) = λ f(y) + μ``.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units; mirrored at its borders.
    size
        Side of the neighbourhood.

    Examples
    --------
    >>> import numpy as np
    >>> median_filter(np.eye(5)).max()
    np.float64(1.0)
    """
    from scipy.ndimage import median_filter as scipy_median_filter

    return _filtered(image, lambda plane: scipy_median_filter(plane, size))


def _filtered(
    image: Array, numpy_filter: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> Array:
    def on_tensor(plane: Tensor) -> Tensor:
        return torch.from_numpy(numpy_filter(plane.numpy()))

    return each_plane(image, on_tensor)
