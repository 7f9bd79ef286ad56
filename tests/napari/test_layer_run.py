"""A whole layer, denoised in steps, without a viewer."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray

import normeq
from normeq._support import memory
from normeq._support.photograph import sample_photograph
from normeq.errors import Cancelled, InputError
from normeq.napari.layer_image import DenoiseSettings, LayerImage
from normeq.napari.layer_run import LayerResult, denoise_in_steps, room_for

NOISY = np.random.default_rng(0).poisson(400 * np.stack([sample_photograph(48)] * 3) + 50)
NOISY = NOISY.astype(np.uint16)


def finished(run: Generator[float, None, LayerResult]) -> tuple[list[float], LayerResult]:
    shares = []
    while True:
        try:
            shares.append(next(run))
        except StopIteration as end:
            return shares, end.value


@pytest.mark.parametrize("settings", [{}, {"sigma": 20.0}, {"strength": 1.5}])
def test_a_layer_becomes_what_denoise_makes_of_it(settings: dict[str, float]) -> None:
    image = LayerImage(NOISY, "ZYX")
    shares, result = finished(denoise_in_steps(image, DenoiseSettings(**settings)))
    sigma, strength = settings.get("sigma"), settings.get("strength", 1.0)
    np.testing.assert_array_equal(result.levels[0], normeq.denoise(NOISY, sigma, strength=strength))
    assert result.levels[0].dtype == np.uint16
    assert shares == sorted(shares)
    assert result.removed is None
    if sigma is None:
        assert result.noise[0].startswith("noise: ")


def test_lazy_layers_are_computed_in_this_process_and_watched() -> None:
    lazy = da.from_array(NOISY, chunks=(2, 24, 48))
    settings = DenoiseSettings("mean_filter")
    shares, result = finished(
        denoise_in_steps(LayerImage(lazy, "ZYX"), settings, with_removed=True)
    )
    np.testing.assert_array_equal(result.levels[0], normeq.denoise(NOISY, model="mean_filter"))
    assert isinstance(result.levels[0], np.ndarray)
    assert isinstance(result.removed, da.Array)
    assert all(0 <= share <= 1 for share in shares)


def test_what_can_only_be_sliced_is_read_on_demand() -> None:
    class Stored:
        shape, dtype, ndim = NOISY.shape, NOISY.dtype, NOISY.ndim

        def __getitem__(self, key: Any) -> Any:
            return NOISY[key]

    settings = DenoiseSettings("median_filter")
    _, result = finished(denoise_in_steps(LayerImage(Stored(), "ZYX"), settings))
    np.testing.assert_array_equal(result.levels[0], normeq.denoise(NOISY, model="median_filter"))


@pytest.mark.parametrize("lazily", [False, True])
def test_labelled_arrays(lazily: bool) -> None:
    data = xarray.DataArray(NOISY, dims=("z", "y", "x"))
    image = LayerImage(data.chunk(z=1) if lazily else data, "ZYX")
    _, result = finished(denoise_in_steps(image, DenoiseSettings("median_filter")))
    np.testing.assert_array_equal(result.levels[0], normeq.denoise(NOISY, model="median_filter"))


def test_what_was_removed_is_the_difference_in_units() -> None:
    settings = DenoiseSettings("median_filter")
    _, result = finished(denoise_in_steps(LayerImage(NOISY, "ZYX"), settings, with_removed=True))
    np.testing.assert_array_equal(
        result.removed, NOISY.astype(np.float32) - result.levels[0].astype(np.float32)
    )
    assert (np.abs(result.removed) <= result.removed_reach).mean() > 0.97


def test_opacity_stays_as_it_is() -> None:
    colours = np.moveaxis(NOISY, 0, -1).astype(np.uint8)
    opacity = np.arange(48 * 48, dtype=np.uint8).reshape(48, 48, 1)
    image = LayerImage(np.concatenate((colours, opacity), -1), "YXC", rgb=True)
    _, result = finished(denoise_in_steps(image, DenoiseSettings("mean_filter")))
    assert result.levels[0].shape == (48, 48, 4)
    np.testing.assert_array_equal(result.levels[0][..., 3:], opacity)
    clean = normeq.denoise(colours, model="mean_filter", channel_axis=-1)
    np.testing.assert_array_equal(result.levels[0][..., :3], clean)


def test_coarser_levels_are_means_of_the_result() -> None:
    settings = DenoiseSettings("mean_filter")
    image = LayerImage(NOISY.astype(np.float64), "ZYX")
    _, result = finished(denoise_in_steps(image, settings, coarser=[(3, 24, 24), (3, 12, 12)]))
    fine, half, quarter = result.levels
    np.testing.assert_allclose(half[1, 2, 3], fine[1, 4:6, 6:8].mean())
    assert quarter.shape == (3, 12, 12)


@pytest.mark.parametrize("lazily", [False, True])
def test_a_run_is_cancelled(lazily: bool) -> None:
    stack = np.tile(NOISY, (100, 1, 1))  # more than is denoised before the first step is seen
    data = da.from_array(stack, chunks=(1, 48, 48)) if lazily else stack
    cancel = threading.Event()
    run = denoise_in_steps(LayerImage(data, "ZYX"), DenoiseSettings(), cancel=cancel)
    next(run)
    cancel.set()
    with pytest.raises(Cancelled):
        finished(run)


def test_closing_a_run_cancels_it() -> None:
    cancel = threading.Event()
    run = denoise_in_steps(LayerImage(NOISY, "ZYX"), DenoiseSettings("mean_filter"), cancel=cancel)
    next(run)
    run.close()
    assert cancel.is_set()


def test_errors_come_with_their_sentence() -> None:
    with pytest.raises(normeq.NormeqError, match="there is no model 'unknown'"):
        finished(denoise_in_steps(LayerImage(NOISY, "ZYX"), DenoiseSettings("unknown")))


def test_a_result_that_does_not_fit_into_memory_is_kept_on_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert type(room_for((2, 3), np.uint8)) is np.ndarray
    monkeypatch.setattr(memory, "available", lambda: 8)
    room = room_for((4, 5), np.float32)
    assert isinstance(room, np.memmap)
    room[...] = 3
    assert room.sum() == 60
    with pytest.raises(InputError, match="GB, more than is free in memory"):
        room_for((10**6, 10**9), np.float32)
