"""Photographs through a microscope: smooth, in range, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from normeq.training.optics import seen_by_microscope

CLEAN = data.camera()[None, 100:196, 200:296].astype(np.float32) / np.float32(255)


def finest_detail(patch: np.ndarray) -> float:
    """Return the mean second difference, as a share of the contrast."""
    return float(np.abs(np.diff(patch, n=2)).mean() / np.ptp(patch))


@pytest.mark.parametrize("seed", range(5))
def test_patches_lose_fine_detail_and_stay_between_black_and_white(seed):
    seen = seen_by_microscope(CLEAN, np.random.default_rng(seed))
    assert seen.shape == CLEAN.shape
    assert seen.dtype == np.float32
    assert 0 <= seen.min() < seen.max() <= 1
    assert finest_detail(seen) < 0.7 * finest_detail(CLEAN)


def test_structures_are_bright_on_a_dark_ground():
    seen = [seen_by_microscope(CLEAN, np.random.default_rng(seed)) for seed in range(40)]
    places = [(patch.mean() - patch.min()) / np.ptp(patch) for patch in seen]
    assert np.median(places) < 0.45


def test_constant_patches_stay_as_they_are():
    flat = np.full((1, 8, 8), 0.25, np.float32)
    assert np.array_equal(seen_by_microscope(flat, np.random.default_rng(0)), flat)
