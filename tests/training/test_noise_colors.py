"""Correlated noise has unit variance and the lengths that are returned with it."""

from __future__ import annotations

import numpy as np
import pytest

from normeq.noise import correlation_length
from normeq.training.noise_colors import (
    colored_noise,
    far_reaching_noise,
    interpolated_noise,
    random_colored_noise,
)


def length_of(noise: np.ndarray, axis: int) -> float:
    along = np.moveaxis(noise, axis, 0)
    rho = [1.0, *((along[:-lag] * along[lag:]).mean() / (along**2).mean() for lag in range(1, 12))]
    return correlation_length(rho)


def test_wider_kernels_have_longer_correlation_along_their_axis():
    rng = np.random.default_rng(0)
    noise, (y, x) = colored_noise((2, 200, 200), (1.5, 0.4), rng)
    assert noise.std() == pytest.approx(1, rel=0.05)
    assert y > 2 > 0.2 > x
    assert length_of(noise, 1) == pytest.approx(y, abs=0.2)
    assert length_of(noise, 2) == pytest.approx(x, abs=0.1)


@pytest.mark.parametrize("seed", range(12))
def test_noise_of_random_colour_has_its_lengths(seed):
    noise, lengths = random_colored_noise((2, 256, 256), (0.3, 2.0), np.random.default_rng(seed))
    assert noise.std() == pytest.approx(1, rel=0.05)
    for axis, length in zip((1, 2), lengths, strict=True):
        assert length_of(noise, axis) == pytest.approx(length, abs=0.25)


def test_about_half_of_random_colours_are_no_gaussian_blur():
    """Behind a Gaussian kernel, lag two is the fourth power of lag one; tails are above it."""
    above = []
    for seed in range(60):
        noise, _ = random_colored_noise((1, 128, 128), (1.0, 1.0), np.random.default_rng(seed))
        one, two = ((noise[:, lag:] * noise[:, :-lag]).mean() for lag in (1, 2))
        above.append(two > one**4 + 0.06)
    assert 15 < sum(above) < 45


def test_interpolated_noise_has_unit_variance_and_is_correlated():
    noise = interpolated_noise((1, 200, 200), np.random.default_rng(0))
    assert noise.std() == pytest.approx(1, rel=0.03)
    assert length_of(noise, 1) > 0.4


def autocorrelation(noise):
    covariance = np.fft.irfft2(np.abs(np.fft.rfft2(noise[0])) ** 2, noise.shape[1:])
    return covariance / covariance[0, 0]


@pytest.mark.parametrize("seed", range(6))
def test_far_reaching_noise_is_weak_and_reaches_several_pixels(seed):
    noise = far_reaching_noise((1, 256, 256), np.random.default_rng(seed))
    assert 0.15 < noise.std() < 0.7
    rho = np.abs(autocorrelation(noise))
    assert max(rho[:4, 3:8].max(), rho[3:8, :4].max()) > 0.2


def test_far_reaching_noise_may_be_ripples():
    """They fall and rise again: half a period away, what was bright is dark."""
    ripples = 0
    for seed in range(60):
        noise = far_reaching_noise((1, 128, 128), np.random.default_rng(seed))
        ripples += autocorrelation(noise)[:6, :6].min() < -0.2
    assert 8 < ripples < 30


def test_far_reaching_noise_is_mostly_streaks():
    """Along a streak it reaches further than diagonally by as much."""
    streaks = 0
    for seed in range(40):
        noise = far_reaching_noise((1, 128, 128), np.random.default_rng(seed))
        diagonal = (noise[:, 3:, 3:] * noise[:, :-3, :-3]).mean()
        across = (noise[:, :, 3:] * noise[:, :, :-3]).mean()
        down = (noise[:, 3:] * noise[:, :-3]).mean()
        streaks += diagonal < 0.15 * (noise**2).mean() < max(across, down)
    assert 14 < streaks < 30
