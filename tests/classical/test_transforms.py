"""Transforms are what their names say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import torch

from normeq.classical.transforms import cosine_basis, haar_basis, spline_wavelet_basis

DOUBLE = torch.zeros((), dtype=torch.float64)
powers_of_two = pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])


@powers_of_two
@pytest.mark.parametrize("transform", [cosine_basis, haar_basis, spline_wavelet_basis])
def test_the_first_row_is_the_mean_and_the_others_ignore_it(transform, size: int) -> None:
    basis = transform(size, DOUBLE)
    expected = torch.zeros(size, dtype=torch.float64)
    expected[0] = size**0.5
    torch.testing.assert_close(basis.sum(1), expected)
    torch.testing.assert_close(basis.norm(dim=1), torch.ones(size, dtype=torch.float64))


@powers_of_two
@pytest.mark.parametrize("transform", [cosine_basis, haar_basis])
def test_orthonormal(transform, size: int) -> None:
    basis = transform(size, DOUBLE)
    torch.testing.assert_close(basis @ basis.T, torch.eye(size, dtype=torch.float64))


def test_cosines_are_scipys() -> None:
    expected = scipy.fft.dct(np.eye(8), axis=0, norm="ortho")
    np.testing.assert_allclose(cosine_basis(8, DOUBLE).numpy(), expected, atol=1e-12)


def test_spline_wavelets_build_from_boxes_and_have_five_dual_moments() -> None:
    basis = spline_wavelet_basis(32, DOUBLE)
    inverse = torch.linalg.inv(basis)
    torch.testing.assert_close(inverse[:, 0], inverse[:1, 0].expand(32))
    # Away from the wrap, a polynomial of degree 4 has no finest detail in the dual basis.
    polynomial = torch.arange(32, dtype=torch.float64) ** 4
    finest = inverse.T[16:][4:12] @ polynomial
    torch.testing.assert_close(finest, torch.zeros(8, dtype=torch.float64), atol=1e-6, rtol=0)
