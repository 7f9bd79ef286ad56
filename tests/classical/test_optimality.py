"""Each method against the definition it stands for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import torch
from skimage.data import camera

from normeq.classical import dct, nlridge, tv
from normeq.classical.methods.nlridge import _combination
from normeq.classical.methods.wnnm import _shrink_singular_values


@pytest.fixture
def noisy() -> np.ndarray:
    clean = camera()[100:148, 200:256].astype(np.float64)
    return clean + 25 * np.random.default_rng(0).standard_normal(clean.shape)


def total_variation(image: np.ndarray) -> float:
    down = np.diff(image, axis=0, append=image[-1:])
    right = np.diff(image, axis=1, append=image[:, -1:])
    return float(np.hypot(down, right).sum())


def test_tv_removes_exactly_the_noise(noisy: np.ndarray) -> None:
    removed = noisy - tv(noisy, 25.0)
    assert np.sqrt(np.mean(removed**2)) == pytest.approx(25.0, rel=1e-3)


def test_tv_is_least_among_images_as_far_from_the_noisy_one(noisy: np.ndarray) -> None:
    solution = tv(noisy, 25.0, tolerance=1e-6, iterations=5000)
    rng = np.random.default_rng(3)
    for size in (0.1, 1.0, 5.0):
        rival = solution + size * rng.standard_normal(noisy.shape)
        removed = noisy - rival
        rival = noisy - removed * 25.0 / np.sqrt(np.mean(removed**2))
        assert total_variation(rival) > total_variation(solution)


def test_tv_of_an_image_below_the_noise_is_its_mean(noisy: np.ndarray) -> None:
    np.testing.assert_allclose(tv(noisy, 2 * noisy.std()), np.full_like(noisy, noisy.mean()))


def test_dct_without_threshold_is_the_identity(noisy: np.ndarray) -> None:
    np.testing.assert_allclose(dct(noisy, 1.0, threshold=0.0), noisy)


def test_dct_of_one_patch(noisy: np.ndarray) -> None:
    patch = noisy[:8, :8]
    spectrum = scipy.fft.dctn(patch, norm="ortho")
    expected = scipy.fft.idctn(np.where(np.abs(spectrum) > 75, spectrum, 0), norm="ortho")
    np.testing.assert_allclose(dct(patch, 25.0), expected)


def test_dct_in_bands_of_rows(noisy: np.ndarray, monkeypatch) -> None:
    whole = dct(noisy, 25.0)
    monkeypatch.setattr("normeq.classical.methods.dct._ROWS_AT_A_TIME", 5)
    np.testing.assert_allclose(dct(noisy, 25.0), whole)


@pytest.mark.parametrize("affine", [True, False])
def test_nlridge_weights_minimise_the_risk(affine: bool) -> None:
    """The second step's weights minimise ``‖X̂Θ - X̂‖² + nσ²‖Θ‖²``, under ``Θᵀ1 = 1`` if affine."""
    torch.manual_seed(0)
    group = 5 + torch.randn(1, 6, 16, dtype=torch.float64)
    energy = 3.0
    weights = _combination(group, energy, energy, affine)[0]

    def risk(candidate: torch.Tensor) -> float:
        misfit = candidate.T @ group[0] - group[0]
        return float(misfit.square().sum() + energy * candidate.square().sum())

    if affine:
        torch.testing.assert_close(weights.sum(0), torch.ones(6, dtype=torch.float64))
    for _ in range(20):
        direction = 0.01 * torch.randn(6, 6, dtype=torch.float64)
        if affine:
            direction = direction - direction.mean(0)
        assert risk(weights + direction) > risk(weights)


def test_nlridge_weights_are_the_closed_form() -> None:
    """``I - nσ² [Q⁻¹ - Q⁻¹1 (Q⁻¹1)ᵀ / 1ᵀQ⁻¹1]`` with the group's offset left in Q."""
    torch.manual_seed(0)
    group = 5 + torch.randn(1, 6, 16, dtype=torch.float64)
    quadratic = group[0] @ group[0].T + 2.0 * torch.eye(6, dtype=torch.float64)
    inverse = quadratic.inverse()
    ones = inverse.sum(1)
    expected = torch.eye(6) - 3.0 * (inverse - torch.outer(ones, ones) / ones.sum())
    torch.testing.assert_close(_combination(group, 2.0, 3.0, affine=True)[0], expected)


def test_nlridge_constraints_differ(noisy: np.ndarray) -> None:
    affine, linear = (
        nlridge(noisy - noisy.mean(), 25.0, constraint=constraint, radius=5)
        for constraint in ("affine", "linear")
    )
    assert np.abs(affine - linear).max() > 0.1


@pytest.mark.parametrize("shape", [(3, 12, 9), (3, 9, 12)])
def test_wnnm_shrinks_singular_values(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    groups = torch.randn(shape, dtype=torch.float64)
    energy = torch.tensor([0.5, 2.0, 1e6], dtype=torch.float64)
    shrunk = _shrink_singular_values(groups, energy)
    for group, result, penalty in zip(groups, shrunk, energy, strict=True):
        left, values, right = torch.linalg.svd(group, full_matrices=False)
        excess = values.square() - 4 * penalty
        wanted = torch.where(excess > 0, (values + excess.clamp_min(0).sqrt()) / 2, 0)
        torch.testing.assert_close(result, left @ torch.diag(wanted) @ right)


def test_wnnm_of_an_empty_group_is_zero() -> None:
    zero = torch.zeros(1, 5, 4)
    torch.testing.assert_close(_shrink_singular_values(zero, torch.ones(1)), zero)
