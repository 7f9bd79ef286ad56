"""Which shipped network denoises an image, by its noise and its colours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from skimage import data

from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.images.array import ArraySource

GRAY = data.camera()[:256, :256].astype("float32")
COLOR = data.astronaut()[:256, :256].astype("float32")


def noisy(clean: np.ndarray, reach: float = 0) -> np.ndarray:
    """Add noise of sigma 20, smoothed over `reach` pixels."""
    noise = np.random.default_rng(0).standard_normal(clean.shape)
    smooth = ndimage.gaussian_filter(noise, reach, axes=(0, 1))
    return clean + (20 * smooth / smooth.std()).astype("float32")


def chosen(model: str, image: np.ndarray, **noise: str) -> str:
    source = ArraySource(image, "YXS"[: image.ndim])
    denoiser, _ = Choice(model, "cpu").prepare(source, NoiseOptions(**noise))
    return denoiser.name


@pytest.mark.parametrize("model", ["default", "default-fast", "Default-Fast"])
def test_white_noise_in_gray_has_a_network_of_its_own(model: str) -> None:
    assert chosen(model, noisy(GRAY)) == model.lower()
    assert chosen(model, noisy(GRAY), noise="gaussian") == model.lower()


@pytest.mark.parametrize("model", ["default", "default-fast"])
def test_other_noise_and_colours_have_the_same_networks(model: str) -> None:
    assert chosen(model, noisy(GRAY, reach=1)) == "default-real"
    assert chosen(model, noisy(COLOR)) == "default-color"
    assert chosen(model, noisy(COLOR, reach=1)) == "default-color-real"


def test_a_version_names_one_network_whatever_the_noise() -> None:
    assert chosen("default-fast@1", noisy(GRAY, reach=1)) == "default-fast"
