"""The shipped models on noise as cameras and microscopes have it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data

import normeq
from normeq.metrics import psnr
from normeq.noise import poisson_gaussian

CLEAN = data.camera()[100:356, 150:406].astype(np.float64)


def photons(seed: int) -> NDArray[np.float64]:
    return poisson_gaussian(CLEAN, 12.0, 2.0, np.random.default_rng(seed))


def score(noisy: NDArray[np.float64], **options: object) -> float:
    clean = normeq.denoise(noisy.astype(np.float32), **options)  # type: ignore[call-overload]
    return psnr(clean / 255, CLEAN / 255)


def correlated() -> NDArray[np.float64]:
    drawn = np.random.default_rng(0).standard_normal(CLEAN.shape)
    noise = ndimage.gaussian_filter(drawn, 0.9)
    return CLEAN + 20 * noise / noise.std()


def test_correlated_noise_is_removed() -> None:
    noisy = correlated()
    assert score(noisy) > score(noisy, noise="gaussian") + 3


def test_noise_that_grows_with_the_signal_is_removed_better() -> None:
    images = [photons(seed) for seed in range(4)]
    gains = [score(noisy) - score(noisy, noise="gaussian") for noisy in images]
    assert np.mean(gains) > 0.2


@pytest.mark.parametrize("sigma", [5, 25])
def test_white_noise_loses_nothing(sigma: float) -> None:
    noisy = CLEAN + sigma * np.random.default_rng(0).standard_normal(CLEAN.shape)
    assert score(noisy) > score(noisy, noise="gaussian") - 0.05
    assert score(noisy) > score(noisy, sigma=sigma) - 0.1


def test_strength_is_obeyed() -> None:
    noisy = correlated()
    removed = [
        np.std(noisy - normeq.denoise(noisy, strength=strength)) for strength in (0.4, 1.0, 2.0)
    ]
    assert removed == sorted(removed)
    assert removed[2] > removed[0] + 2


def test_units_make_no_difference_to_real_noise() -> None:
    noisy = photons(0)
    clean = normeq.denoise(noisy)
    other = normeq.denoise(7 * noisy + 1000)
    np.testing.assert_allclose(other, 7 * clean + 1000, atol=1e-3 * 7 * noisy.std())
