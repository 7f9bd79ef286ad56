"""Transform matrices of the methods that threshold: cosines, Haar and spline wavelets.

A row of a matrix is one basis function; the first is constant.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

__all__ = ["cosine_basis", "haar_basis", "spline_wavelet_basis"]

# The analysis low-pass filter of the biorthogonal spline wavelet 1.5; its high-pass is Haar's.
_SPLINE_LOW = torch.tensor([3.0, -3.0, -22.0, 22.0, 128.0, 128.0, 22.0, -22.0, -3.0, 3.0]) / 128


def cosine_basis(size: int, like: Tensor) -> Tensor:
    """Return the orthonormal cosine transform, in the type of another tensor.

    Examples
    --------
    >>> import torch
    >>> cosine_basis(2, torch.zeros(()))
    tensor([[ 0.7071,  0.7071],
            [ 0.7071, -0.7071]])
    """
    frequency = torch.arange(size, dtype=torch.float64)[:, None]
    position = torch.arange(size, dtype=torch.float64) + 0.5
    basis = torch.cos(math.pi / size * frequency * position)
    return normalize(basis, dim=1).to(like)


def haar_basis(size: int, like: Tensor) -> Tensor:
    """Return the orthonormal Haar transform of a power of two, in the type of another tensor.

    Examples
    --------
    >>> import torch
    >>> haar_basis(4, torch.zeros(())).sign()
    tensor([[ 1.,  1.,  1.,  1.],
            [ 1.,  1., -1., -1.],
            [ 1., -1.,  0.,  0.],
            [ 0.,  0.,  1., -1.]])
    """
    return _wavelet_basis(size, torch.ones(2, dtype=torch.float64)).to(like)


def spline_wavelet_basis(size: int, like: Tensor) -> Tensor:
    """Return the periodic spline wavelet 1.5 of a power of two, in the type of another tensor.

    Its rows have unit length, so that white noise has the same variance in every coefficient,
    but they are not orthogonal: the inverse is not the transpose.

    Examples
    --------
    >>> import torch
    >>> spline_wavelet_basis(2, torch.zeros(()))
    tensor([[ 0.7071,  0.7071],
            [ 0.7071, -0.7071]])
    """
    return _wavelet_basis(size, _SPLINE_LOW.double()).to(like)


def _wavelet_basis(size: int, low: Tensor) -> Tensor:
    """Filter and decimate down to one coefficient; `low` is centred on a pair of samples."""
    smooth = torch.eye(size, dtype=torch.float64)
    details: list[Tensor] = []
    while len(smooth) > 1:
        even, odd = smooth[::2], smooth[1::2]
        details.insert(0, even - odd)
        reach = len(low) // 2 - 1
        shifted = (smooth.roll(reach - tap, 0)[::2] * weight for tap, weight in enumerate(low))
        smooth = torch.stack(list(shifted)).sum(0)
    return normalize(torch.cat([smooth, *details]), dim=1)
