from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from skimage import color, data

from normeq.noise.mosaic import is_bayer_mosaic, is_bayer_mosaic_of

PHOTOGRAPHS = {name: getattr(data, name)().astype(np.float64) for name in ("astronaut", "coffee")}
PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")


def mosaic(photograph: np.ndarray, pattern: str) -> np.ndarray:
    plane = np.empty(photograph.shape[:2])
    for letter, (row, column) in zip(pattern, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
        plane[row::2, column::2] = photograph[row::2, column::2, "RGB".index(letter)]
    return plane


def gray(name: str) -> np.ndarray:
    return 255.0 * color.rgb2gray(PHOTOGRAPHS[name] / 255.0)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", PHOTOGRAPHS)
@pytest.mark.parametrize("sigma", [0.0, 10.0])
def test_mosaics_are_recognised_in_any_units(name, pattern, sigma):
    plane = mosaic(PHOTOGRAPHS[name], pattern)
    plane = plane + sigma * np.random.default_rng(0).standard_normal(plane.shape)
    assert is_bayer_mosaic(plane)
    assert is_bayer_mosaic(1e-3 * plane - 7.0)
    assert is_bayer_mosaic(plane[1:, 1:])


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_photographs_are_not_taken_for_mosaics(name):
    plane = gray(name)
    assert not is_bayer_mosaic(plane)
    assert not is_bayer_mosaic(PHOTOGRAPHS[name].transpose(2, 0, 1))
    assert not is_bayer_mosaic(plane + 20 * np.random.default_rng(0).standard_normal(plane.shape))


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_upsampled_images_are_not_taken_for_mosaics(name, order):
    assert not is_bayer_mosaic(ndimage.zoom(gray(name), 2, order=order))
    assert not is_bayer_mosaic(np.kron(gray(name)[:200, :200], np.ones((2, 2))))


@pytest.mark.parametrize("gain", [1.02, 1.2, 2.0])
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_alternating_gains_are_not_taken_for_mosaics(name, gain):
    plane = gray(name)
    for step in (np.s_[:, 1::2], np.s_[1::2, :]):
        striped = plane.copy()
        striped[step] *= gain
        assert not is_bayer_mosaic(striped)
    checkered = plane.copy()
    checkered[::2, ::2] *= gain
    checkered[1::2, 1::2] *= gain
    assert not is_bayer_mosaic(checkered)


@pytest.mark.parametrize(
    "plane",
    [
        np.zeros((100, 100)),
        np.random.default_rng(0).standard_normal((300, 300)),
        np.add.outer(np.arange(200.0), np.arange(200.0)),
        np.tile([[0.0, 1.0], [1.0, 0.0]], (60, 60)),
        np.eye(50),
    ],
    ids=["constant", "noise", "ramp", "checkerboard", "diagonal"],
)
def test_synthetic_images_are_not_taken_for_mosaics(plane):
    assert not is_bayer_mosaic(plane)


def test_small_planes_are_no_mosaics():
    assert not is_bayer_mosaic(mosaic(PHOTOGRAPHS["coffee"], "RGGB")[:20, :400])


def test_missing_pixels_and_large_images_do_not_hide_a_mosaic():
    plane = mosaic(PHOTOGRAPHS["astronaut"], "GRBG")
    holes = np.where(np.random.default_rng(0).random(plane.shape) < 0.02, np.nan, plane)
    assert is_bayer_mosaic(holes)
    large = np.tile(plane, (3, 4))
    read = []

    def rows(frame, rows, columns):
        read.append((rows.stop - rows.start) * (columns.stop - columns.start))
        return large[rows, columns]

    assert is_bayer_mosaic_of(rows, large.shape)
    assert sum(read) <= 2**20
