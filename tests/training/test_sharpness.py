"""Reduced and sharpened crops: more detail, the same brightness, never beyond black and white."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from normeq.training.data import Patches
from normeq.training.recipe import Data
from normeq.training.sharpness import reduced, sharpened, side_before_reduction

CLEAN = data.camera()[None, 100:356, 100:356].astype(np.float32) / np.float32(255)


def steepness(patch):
    return np.abs(np.diff(patch)).mean()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("channels", [1, 3])
def test_a_reduced_square_shows_the_same_scene_with_more_detail_in_a_pixel(seed, channels):
    small = reduced(np.repeat(CLEAN, channels, 0), 128, np.random.default_rng(seed))
    assert (small.shape, small.dtype) == ((channels, 128, 128), np.float32)
    means = CLEAN.reshape(128, 2, 128, 2).mean((1, 3))
    assert np.corrcoef(small[0].ravel(), means.ravel())[0, 1] > 0.99
    assert steepness(small) > 1.2 * steepness(CLEAN)
    assert 0 <= small.min() < small.max() <= 1


def test_squares_before_reduction_are_larger_but_fit_into_the_image():
    sides = [side_before_reduction(128, 300, np.random.default_rng(i)) for i in range(100)]
    assert min(sides) > 128
    assert max(sides) == 300
    assert side_before_reduction(128, 128, np.random.default_rng(0)) == 128


@pytest.mark.parametrize("seed", range(8))
def test_sharpening_amplifies_detail_and_keeps_the_brightness(seed):
    sharp = sharpened(CLEAN, np.random.default_rng(seed))
    assert (sharp.shape, sharp.dtype) == (CLEAN.shape, np.float32)
    assert steepness(sharp) > steepness(CLEAN)
    assert abs(sharp.mean() - CLEAN.mean()) < 0.01
    assert 0 <= sharp.min() < sharp.max() <= 1


@pytest.mark.parametrize("change", [{"reduced": 1.0}, {"sharpened": 1.0}, {"detail": 2.0}])
def test_recipes_ask_for_more_detail(change):
    image = data.camera()[None]
    recipes = [Data(patch=64, sigma=1), Data(patch=64, sigma=1, **change)]
    plain, detailed = (
        np.mean([steepness(Patches([image], recipe, 0).sample(i).target) for i in range(60)])
        for recipe in recipes
    )
    assert detailed > 1.1 * plain
