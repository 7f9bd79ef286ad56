from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st

import normeq
from normeq.errors import InputError, UsageError
from normeq.explorer.exploration import Exploration, Setting
from normeq.explorer.offered_models import ORDINARY
from normeq.explorer.pyramid import TILE, TilePlace
from normeq.explorer.unit_change import measure_unit_change
from normeq.images import open_image


def setting_of(exploration: Exploration, **changes: object) -> Setting:
    return Setting(next(iter(exploration.models)), **changes)


def test_tiles_are_those_of_the_whole_result(exploration: Exploration, stack: Path) -> None:
    image, setting = tifffile.imread(stack), setting_of(exploration)
    whole = normeq.denoise(image.astype(np.float64), axes="ZYX", model=setting.model)
    for row, column in ((0, 0), (1, 1)):
        place = TilePlace(1, 0, row, column)
        region = place.region(*image.shape[1:])
        assert np.array_equal(exploration.input_tile(place)[..., 0], image[1][region])
        tile = exploration.denoised_tile(setting, place)[..., 0]
        assert np.allclose(tile, whole[1][region], atol=1e-3)
    assert exploration.noise_found(setting)[0].startswith("noise: uniform, sigma 1")


@settings(max_examples=4)
@given(gain=st.floats(1e-3, 1e3), widths=st.floats(-1e3, 1e3))
def test_an_equivariant_network_follows_every_change_of_units(
    exploration: Exploration, gain: float, widths: float
) -> None:
    low, high = exploration.shown_range(0)
    setting = setting_of(exploration, gain=gain, offset=gain * widths * (high - low))
    found = measure_unit_change(exploration, setting, 0, (200, 200))
    assert found.follows
    assert found.worst < 1e-3
    assert found.network_alone is not None
    assert found.network_alone < 1e-5 * (1 + abs(widths))  # rounding of single precision


@pytest.mark.parametrize(("gain", "widths"), [(0.1, 0.0), (1.0, 5.0)], ids=["gain", "offset"])
def test_the_ordinary_network_does_not_follow(
    exploration: Exploration, gain: float, widths: float
) -> None:
    low, high = exploration.shown_range(0)
    offset = gain * widths * (high - low)
    found = measure_unit_change(
        exploration, Setting(ORDINARY, gain=gain, offset=offset), 0, (200, 200)
    )
    assert not found.follows
    assert found.typical > 0.1
    assert found.network_alone is not None
    assert found.network_alone > 0.5


def test_the_ordinary_network_denoises_in_the_units_it_was_trained_for() -> None:
    """It is an honest example: only the change of units is to blame."""
    from skimage.data import camera

    from normeq.explorer.offered_models import ordinary_network
    from normeq.metrics import psnr

    clean = camera()[100:260, 150:310] / 255.0
    noisy = clean + np.random.default_rng(0).normal(0, 25 / 255, clean.shape)
    result = normeq.denoise(noisy, model=ordinary_network(), value_range=(0.0, 1.0))
    assert psnr(result, clean) > psnr(noisy, clean) + 5


def test_filters_sum_to_one_for_the_equivariant_network_alone(exploration: Exploration) -> None:
    changed = {"gain": 0.1, "offset": 300.0}
    for units in ({}, changed):
        setting = setting_of(exploration, **units)
        assert exploration.adaptive_filter(setting, 0, (30, 50), 0).sum == pytest.approx(
            1, abs=1e-4
        )
    ordinary = exploration.adaptive_filter(Setting(ORDINARY, **changed), 0, (30, 50), 0)
    assert abs(ordinary.sum - 1) > 0.01


def test_methods_that_see_whole_planes_are_for_small_images(
    exploration: Exploration, tmp_path: Path
) -> None:
    place = TilePlace(0, 0, 1, 0)
    setting = Setting("median_filter")
    plane = normeq.denoise(exploration.image.read(0, 0, 400)[..., 0], model="median_filter")
    assert np.allclose(exploration.denoised_tile(setting, place)[..., 0], plane[TILE:, :TILE])
    with pytest.raises(UsageError, match="median_filter is not a network"):
        exploration.adaptive_filter(setting, 0, (0, 0), 0)
    tifffile.imwrite(tmp_path / "wide.tif", np.zeros((600, 600), np.uint8))
    with open_image(tmp_path / "wide.tif") as image:
        wide = Exploration(image, "median_filter")
        with pytest.raises(UsageError, match="360,000 pixels; the limit here is 262,144"):
            wide.denoised_tile(setting, TilePlace(0, 0, 0, 0))


def test_missing_pixels_and_colours_are_shown(tmp_path: Path, weights: Path) -> None:
    pixels = np.random.default_rng(0).normal(5, 1, (40, 50, 3)).astype(np.float32)
    pixels[3, 4] = np.nan
    tifffile.imwrite(tmp_path / "colour.tif", pixels, photometric="rgb")
    with open_image(tmp_path / "colour.tif") as image:
        found = Exploration(image, str(weights))
        tile = found.denoised_tile(setting_of(found), TilePlace(0, 0, 0, 0))
        assert tile.shape == (40, 50, 3)
        assert np.isnan(tile[3, 4]).all()
        assert np.isfinite(tile).sum() == tile.size - 3
        change = measure_unit_change(found, setting_of(found, gain=2.0), 0, (20, 20))
        assert change.follows
        assert change.network_alone is None  # it takes no pixels without a value


def test_a_mosaic_is_shown_as_its_four_planes(tmp_path: Path, weights: Path) -> None:
    colours = np.array([[100.0, 400.0], [400.0, 900.0]])
    mosaic = np.tile(colours, (32, 32)) + np.random.default_rng(0).normal(0, 5, (64, 64))
    tifffile.imwrite(tmp_path / "raw.tif", mosaic.astype(np.uint16))
    with open_image(tmp_path / "raw.tif") as image:
        undeclared = Exploration(image, str(weights))
        with pytest.raises(InputError, match="Bayer mosaic"):
            undeclared.denoised_tile(setting_of(undeclared), TilePlace(0, 0, 0, 0))
        declared = Exploration(image, str(weights), bayer="RGGB")
        assert declared.image.frames == 4
        tile = declared.denoised_tile(setting_of(declared), TilePlace(3, 0, 0, 0))
        assert tile.shape == (32, 32, 1)
        assert tile.mean() == pytest.approx(900, abs=5)
