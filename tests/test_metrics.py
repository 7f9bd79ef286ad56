from __future__ import annotations

import math

import numpy as np
import pytest

from normeq.metrics import psnr, ssim


def test_psnr_clips_both_images_and_knows_perfection():
    truth = np.array([[0.0, 1.0], [0.5, 0.5]])
    beyond = np.array([[-9.0, 9.0], [0.5, 0.5]])
    assert psnr(beyond, truth) == math.inf
    near = truth + np.array([[0, 0], [0.1, -0.1]])
    assert psnr(near, truth) == pytest.approx(-10 * math.log10(0.005))


def test_what_is_no_number_has_no_psnr():
    assert math.isnan(psnr(np.full((4, 4), math.nan), np.zeros((4, 4))))


def test_psnr_of_single_precision_is_computed_in_double():
    truth = np.full((4, 4), 0.5, np.float32)
    image = truth + np.float32(2**-20)
    assert psnr(image, truth) == pytest.approx(20 * math.log10(2**20))


def test_ssim_falls_with_noise_in_gray_and_colour():
    rng = np.random.default_rng(0)
    for shape in ((32, 32), (32, 32, 3)):
        truth = rng.random(shape)
        little, much = (truth + s * rng.standard_normal(shape) for s in (0.05, 0.5))
        assert 1 > ssim(little, truth) > ssim(much, truth) > 0
