"""Stripes and straight edges drawn over photographs: in range, periodic, straight."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from normeq.training import man_made as module
from normeq.training.data import Patches
from normeq.training.man_made import man_made
from normeq.training.recipe import Data

CLEAN = data.camera()[None, 100:228, 200:328].astype(np.float32) / np.float32(255)
FLAT = np.full((1, 128, 128), 0.5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("channels", [1, 3])
def test_patches_keep_their_shape_and_stay_between_black_and_white(seed, channels):
    clean = np.repeat(CLEAN, channels, 0)
    drawn = man_made(clean, np.random.default_rng(seed))
    assert (drawn.shape, drawn.dtype) == (clean.shape, np.float32)
    assert 0 <= drawn.min() < drawn.max() <= 1
    assert not np.array_equal(drawn, clean)
    assert np.array_equal(drawn, man_made(clean, np.random.default_rng(seed)))


def test_stripes_have_the_periods_they_are_meant_to_have(monkeypatch):
    for setting, value in (("_BEND", 0.0), ("_WOVEN", 0.0), ("_IN_PART", 0.0)):
        monkeypatch.setattr(module, setting, value)
    found = []
    for seed in range(30):
        striped = module._striped(FLAT, np.random.default_rng(seed))[0]
        power = np.abs(np.fft.fft2(striped - striped.mean()))
        down, right = np.unravel_index(power.argmax(), power.shape)
        found.append(1 / np.hypot(np.fft.fftfreq(128)[down], np.fft.fftfreq(128)[right]))
    assert 2.4 < min(found) < 4
    assert 10 < max(found) < 15


@pytest.mark.parametrize("seed", range(10))
def test_facets_are_smooth_but_for_few_edges(seed):
    faceted = module._faceted(FLAT, np.random.default_rng(seed))[0]
    curvature = np.abs(np.diff(faceted, n=2))
    assert np.median(curvature) < 1e-12
    assert curvature.max() > 1e-3


def test_the_share_of_a_recipe_says_how_many_patches_are_drawn_over():
    image = np.full((1, 128, 128), 128, np.uint8)
    patches = Patches([image], Data(patch=64, sigma=1, man_made=0.5), 0)
    drawn = [patches.sample(index).target.std() > 0 for index in range(60)]
    assert 0.3 < np.mean(drawn) < 0.7
