"""Sliding DCT with a hard threshold."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d

from normeq.classical.plane_by_plane import Array, each_plane, positive_sigma
from normeq.classical.transforms import cosine_basis
from normeq.errors import InputError

__all__ = ["dct"]

_ROWS_AT_A_TIME = 128


def dct(image: Array, sigma: float, *, patch: int = 8, threshold: float = 3.0) -> Array:
    """Threshold the DCT of every patch and average: ``f(λy, λσ) = λ f(y, σ)``.

    All coefficients are thresholded, the mean of the patch included, as in the original:
    an offset decides whether that mean survives, so the method is not shift-equivariant.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    patch
        Side of the patches.
    threshold
        Coefficients below ``threshold·sigma`` are set to zero.

    References
    ----------
    G. Yu and G. Sapiro, "DCT image denoising: a simple and effective image denoising
    algorithm", Image Processing On Line, 2011.

    Examples
    --------
    >>> import torch
    >>> noisy = 100 + 10 * torch.randn(32, 32, generator=torch.manual_seed(0))
    >>> bool(dct(noisy, 10.0).std() < 3)
    True
    """
    sigma = positive_sigma(sigma)
    return each_plane(image, lambda plane: _dct(plane, threshold * sigma, patch))


def _dct(plane: Tensor, threshold: float, size: int) -> Tensor:
    height, width = plane.shape
    if min(height, width) < size:
        raise InputError(
            f"the image measures {height} x {width} pixels, less than the patches of "
            f"{size} x {size}: pass a smaller patch."
        )
    basis = cosine_basis(size, plane)
    kernels = torch.einsum("ay,bx->abyx", basis, basis).reshape(-1, 1, size, size)
    total = torch.zeros_like(plane)
    for top in range(0, height - size + 1, _ROWS_AT_A_TIME):
        rows = slice(top, min(top + _ROWS_AT_A_TIME, height - size + 1) + size - 1)
        coefficients = conv2d(plane[None, rows], kernels)
        coefficients *= coefficients.abs() > threshold
        total[rows] += conv_transpose2d(coefficients, kernels)[0]
    return total / (_coverage(height, size)[:, None] * _coverage(width, size)).to(plane)


def _coverage(length: int, size: int) -> Tensor:
    """Count the patches that cover each pixel of a line."""
    patches = torch.ones(1, length - size + 1)
    return conv_transpose2d(patches[None, :, None], torch.ones(1, 1, 1, size)).flatten()
