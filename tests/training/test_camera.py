"""What a camera makes of a scene: the same picture, with noise that neighbours share."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from normeq.training.camera import photographed

SCENE = np.moveaxis(data.astronaut()[:128, 100:228] / np.float32(255), -1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_it_is_the_scene_but_for_the_finest_detail(seed):
    bare, _ = photographed(SCENE, 0.05, np.random.default_rng(seed))
    assert bare.shape == SCENE.shape
    assert bare.dtype == np.float32
    assert np.sqrt(np.mean((bare - SCENE) ** 2)) < 0.06


@pytest.mark.parametrize("seed", range(4))
def test_noise_grows_with_the_level_and_is_shared_by_neighbours(seed):
    spreads = []
    for level in (0.02, 0.08):
        bare, noisy = photographed(SCENE, level, np.random.default_rng(seed))
        noise = noisy - bare
        spreads.append(noise.std())
        assert abs(noise.mean()) < 0.3 * noise.std()
        assert (noise[:, 1:] * noise[:, :-1]).mean() > 0.2 * noise.var()
    assert 0.3 * 0.02 < spreads[0] < 2 * 0.02
    assert spreads[1] > 2 * spreads[0]


def test_a_flat_scene_stays_flat_and_keeps_its_colour():
    flat = np.broadcast_to(np.float32([0.2, 0.5, 0.7])[:, None, None], (3, 32, 32))
    bare, _ = photographed(flat, 0.05, np.random.default_rng(0))
    np.testing.assert_allclose(bare, flat, atol=1e-5)


def test_black_stays_finite():
    _, noisy = photographed(np.zeros((3, 32, 32), np.float32), 0.05, np.random.default_rng(0))
    assert np.isfinite(noisy).all()
