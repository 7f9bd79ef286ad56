"""Parts of a layer are what the whole layer becomes there."""

from __future__ import annotations

import threading
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import normeq
from normeq._support.photograph import sample_photograph
from normeq.errors import UsageError
from normeq.napari import layer_walk
from normeq.napari.layer_image import DenoiseSettings, LayerImage
from normeq.napari.layer_walk import walk_of

CLEAN = 1000 * sample_photograph(64)
NOISY = CLEAN + np.random.default_rng(0).normal(0, 40, (2, 3, 64, 64))


@pytest.mark.parametrize("settings", [DenoiseSettings(), DenoiseSettings(sigma=40.0, strength=1.5)])
@pytest.mark.parametrize("lazily", [False, True])
def test_a_region_is_that_of_the_whole_result(settings: DenoiseSettings, lazily: bool) -> None:
    data = da.from_array(NOISY, chunks=(1, 1, 32, 32)) if lazily else NOISY
    walk = walk_of(LayerImage(data, "TZYX"), settings)
    whole = normeq.denoise(NOISY, settings.sigma, strength=settings.strength, axes="TZYX")
    part = walk.region((1, 2), slice(10, 40), slice(30, 64))
    np.testing.assert_allclose(part, whole[1, 2, 10:40, 30:64], atol=1e-3 * NOISY.std())


def test_rows_may_come_after_columns() -> None:
    walk = walk_of(LayerImage(np.swapaxes(NOISY, 2, 3), "TZXY"), DenoiseSettings())
    whole = normeq.denoise(NOISY, axes="TZYX")
    part = walk.region((0, 1), slice(8, 24), slice(0, 64))
    np.testing.assert_allclose(part, whole[0, 1, 8:24], atol=1e-3 * NOISY.std())


def test_a_view_comes_in_parts_that_cover_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_walk, "PART", 20)
    walk = walk_of(LayerImage(NOISY, "TZYX"), DenoiseSettings("mean_filter"))
    rows, columns = slice(4, 60), slice(0, 50)
    first, *parts = walk.view((0, 0), rows, columns)
    np.testing.assert_array_equal(first.pixels, NOISY[0, 0, rows, columns])
    seen = np.zeros((64, 64))
    for part in parts:
        seen[part.rows, part.columns] += 1
    assert (seen[rows, columns] == 1).all()
    assert seen.sum() == 56 * 50
    middle = parts[0]
    assert middle.rows.start <= 32 < middle.rows.stop
    whole = normeq.denoise(NOISY[0, 0], model="mean_filter")
    np.testing.assert_allclose(middle.pixels, whole[middle.rows, middle.columns])


def test_a_view_ends_when_it_is_cancelled() -> None:
    cancel = threading.Event()
    walk = walk_of(LayerImage(NOISY, "TZYX"), DenoiseSettings("mean_filter"))
    view = walk.view((0, 0), slice(0, 64), slice(0, 64), cancel)
    next(view)
    cancel.set()
    assert list(view) == []


def test_colours_are_shown_together() -> None:
    colours = np.moveaxis(NOISY[0], 0, -1)
    walk = walk_of(LayerImage(colours, "YXC", rgb=True), DenoiseSettings("median_filter"))
    part = walk.region((), slice(0, 64), slice(0, 64))
    whole = normeq.denoise(colours, model="median_filter", channel_axis=-1)
    np.testing.assert_allclose(part, whole)


@pytest.mark.parametrize("rgb", [False, True])
def test_a_network_may_see_colours_together(rgb: bool, tmp_path: Path) -> None:
    net = normeq.create("fdncnn", channels=3, width=4, depth=3)
    normeq.save(net, tmp_path / "colour.safetensors", {})
    settings = DenoiseSettings(str(tmp_path / "colour.safetensors"))
    data = np.moveaxis(NOISY[0], 0, -1) if rgb else NOISY[0]
    axes = "YXC" if rgb else "CYX"
    walk = walk_of(LayerImage(data, axes, rgb), settings)
    whole = normeq.denoise(data, model=settings.model, axes=axes)
    part = walk.region(() if rgb else (2,), slice(8, 40), slice(0, 64))
    wanted = whole[8:40] if rgb else whole[2, 8:40]
    np.testing.assert_allclose(part, wanted, atol=1e-3 * NOISY.std())
    assert walk.filter_at(() if rgb else (2,), (20, 30)).weights.shape[0] == 3


def test_the_noise_is_estimated_once_for_all_strengths(monkeypatch: pytest.MonkeyPatch) -> None:
    image = LayerImage(NOISY, "TZYX")
    first = walk_of(image, DenoiseSettings())
    assert "sigma" in first.noise[0]
    monkeypatch.setattr("normeq.denoising.assumed_noise.estimate_part", None)
    other = walk_of(image, DenoiseSettings(strength=2.0))
    assert other.noise == first.noise


def test_filters_of_an_equivariant_network_sum_to_one() -> None:
    found = walk_of(LayerImage(NOISY, "TZYX"), DenoiseSettings()).filter_at((0, 1), (20, 30))
    assert found.at == (20, 30)
    assert found.sum == pytest.approx(1, abs=1e-3)
    colours = LayerImage(np.moveaxis(NOISY[0], 0, -1), "YXC", rgb=True)
    other = walk_of(colours, DenoiseSettings(sigma=40.0)).filter_at((), (20, 30))
    assert other.sum == pytest.approx(1, abs=1e-3)
    assert other.noise_left is not None


def test_methods_without_derivatives_have_no_filters() -> None:
    walk = walk_of(LayerImage(NOISY, "TZYX"), DenoiseSettings("median_filter"))
    with pytest.raises(UsageError, match="median_filter is not a network"):
        walk.filter_at((0, 0), (1, 1))


def test_mosaics_have_no_preview() -> None:
    walk = walk_of(LayerImage(NOISY, "TZYX"), DenoiseSettings("median_filter", bayer="RGGB"))
    with pytest.raises(UsageError, match="mosaic"):
        walk.region((0, 0), slice(0, 8), slice(0, 8))
