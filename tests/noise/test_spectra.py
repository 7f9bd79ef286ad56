"""Spectra of blocks: their laws, and the independence of their halves."""

import numpy as np
import pytest
from scipy import ndimage

from normeq.noise import spectra
from normeq.noise.correlation import autocorrelation_of_kernel

SIDE = 1024


def blurred_noise(width, seed=0):
    """Return noise of unit variance, and its autocorrelation."""
    impulse = np.zeros(33)
    impulse[16] = 1.0
    kernel = ndimage.gaussian_filter1d(impulse, width) if width else impulse
    noise = np.random.default_rng(seed).standard_normal((SIDE, SIDE))
    for axis in (0, 1):
        noise = ndimage.convolve1d(noise, kernel, axis, mode="wrap")
    rho = autocorrelation_of_kernel(kernel, 0)[: spectra.REACH + 1]
    return noise / (kernel**2).sum(), np.outer(rho, rho)


def blocks_of_noise(width):
    noise, rho = blurred_noise(width)
    return spectra.cut(noise).reshape(-1, spectra.BLOCK, spectra.BLOCK), rho


@pytest.mark.parametrize("width", [0, 0.5, 1.2])
def test_the_mean_power_of_noise_follows_from_its_autocorrelation(width):
    blocks, rho = blocks_of_noise(width)
    chosen = spectra.COSINE_INNER & (spectra.expected_cosine(rho) > 0.1)
    ratio = spectra.cosine_power(blocks).mean(0)[chosen] / spectra.expected_cosine(rho)[chosen]
    assert abs(ratio.mean() - 1.0) < 0.02
    for half, expected in zip(
        spectra.fourier_power(blocks).mean(0), spectra.expected_fourier(rho), strict=True
    ):
        chosen = spectra.FOURIER_INNER & (expected > 0.1)
        assert abs((half[chosen] / expected[chosen]).mean() - 1.0) < 0.02


@pytest.mark.parametrize("width", [0, 0.5, 1.2])
def test_blocks_chosen_by_one_half_are_as_loud_as_others_in_the_other(width):
    blocks, rho = blocks_of_noise(width)
    expected = spectra.expected_fourier(rho)
    used = spectra.FOURIER_INNER & (expected > 0.1).all(0)
    levels = (spectra.fourier_power(blocks)[..., used] / expected[:, used]).mean(2)
    low = spectra.COSINE_INNER & (spectra.COSINE_FREQUENCY < 0.6)
    for half in (0, 1):
        other = low & (half != spectra.COSINE_HALF)
        energy = spectra.cosine_power(blocks)[:, other].sum(1)
        quiet = energy <= np.quantile(energy, 0.08)
        assert abs(levels[quiet, half].mean() - 1.0) < 0.06
        # Chosen by the same half, they are too quiet.
        own = spectra.cosine_power(blocks)[:, low & (half == spectra.COSINE_HALF)].sum(1)
        assert levels[own <= np.quantile(own, 0.08), half].mean() < 0.97
