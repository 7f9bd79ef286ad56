"""The colours of a photograph are denoised together, other channels never."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tifffile
import xarray
import zarr
from helpers.small_networks import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data, io

import normeq
from normeq.denoising.arrays import array_source
from normeq.denoising.assumed_noise import assume_noise
from normeq.denoising.names import denoiser_for
from normeq.denoising.noise_options import NoiseOptions
from normeq.errors import UsageError
from normeq.noise import NoiseModel, poisson_gaussian

TOLD = tiny(
    "unet",
    "norm-equiv-residual",
    takes_sigma="optional",
    takes_correlation=True,
    channels=3,
    separate_channels=True,
).double()
CLEAN = data.astronaut()[:96, 100:212].astype(np.float64)
LEVELS = np.array([5.0, 10.0, 20.0])


def noisy(seed: int = 0, levels: NDArray[np.float64] = LEVELS) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    smooth = ndimage.gaussian_filter(CLEAN, (4, 4, 0))
    return smooth + levels * rng.standard_normal(CLEAN.shape)


def assumed(image: NDArray[Any], **options: Any) -> Any:
    source = array_source(3, image, "YXS")
    return assume_noise(denoiser_for(TOLD), source, NoiseOptions(**options)).of(0, 0)


# Which images are in colour -------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"channel_axis": -1}, {"axes": "YXS"}, {"axes": "yxs"}])
def test_colours_are_denoised_together_which_is_said(options: Any, caplog: Any) -> None:
    image = noisy()
    with caplog.at_level(logging.INFO):
        clean = normeq.denoise(image, **options)
    assert "colour: 3 channels are denoised together by default-color" in caplog.messages
    together = normeq.denoise(image, model="default-color", axes="YXC")
    np.testing.assert_array_equal(clean, together)


def test_colours_with_correlated_noise_have_a_network_of_their_own(caplog: Any) -> None:
    smooth = ndimage.gaussian_filter(CLEAN, (4, 4, 0))
    unit = np.random.default_rng(0).standard_normal(CLEAN.shape)
    image = smooth + 40 * ndimage.gaussian_filter(unit, (1, 1, 0))
    with caplog.at_level(logging.INFO):
        clean = normeq.denoise(image, axes="YXS")
    assert "colour: 3 channels are denoised together by default-color-real" in caplog.messages
    caplog.clear()
    with caplog.at_level(logging.INFO):
        normeq.denoise(image, axes="YXS", noise="gaussian")
    assert "colour: 3 channels are denoised together by default-color" in caplog.messages
    real = normeq.denoise(image, axes="YXS", model="default-color-real")
    np.testing.assert_array_equal(clean, real)


def test_other_channels_are_never_mixed(caplog: Any) -> None:
    image = noisy()
    with caplog.at_level(logging.INFO):
        clean = normeq.denoise(image, axes="YXC")
    assert not [line for line in caplog.messages if line.startswith("colour")]
    for channel in range(3):
        alone = normeq.denoise(image[..., channel])
        np.testing.assert_allclose(clean[..., channel], alone, atol=1e-5 * alone.std())


def test_axes_that_do_not_fit_are_named() -> None:
    with pytest.raises(UsageError, match="name 3 axes"):
        normeq.denoise(noisy()[..., 0], axes="YXS")


def test_two_or_four_channels_are_not_colours() -> None:
    for count in (2, 4):
        image = np.repeat(noisy()[..., :1], count, -1)
        clean = normeq.denoise(image, channel_axis=-1)
        np.testing.assert_array_equal(clean[..., 0], clean[..., 1])


@pytest.mark.parametrize("noise", ["auto", "gaussian"])
def test_three_channels_that_are_the_same_are_gray(noise: Any) -> None:
    gray = noisy()[..., 0]
    clean = normeq.denoise(np.stack([gray] * 3, -1), channel_axis=-1, noise=noise)
    alone = normeq.denoise(gray, noise=noise)
    np.testing.assert_allclose(clean[..., 1], alone, atol=1e-5 * alone.std())


def save_png(path: Path, image: NDArray[np.uint8]) -> Path:
    io.imsave(path.with_suffix(".png"), image, check_contrast=False)
    return path.with_suffix(".png")


def save_tiff(path: Path, image: NDArray[np.uint8], **options: Any) -> Path:
    tifffile.imwrite(path.with_suffix(".tif"), image, **options)
    return path.with_suffix(".tif")


def found_in(path: Path, **options: Any) -> list[str]:
    [outcome] = normeq.denoise_files(path, path.parent / "out", **options)
    assert outcome.status == "done", outcome.error
    return [line for line in outcome.noise_found if line.startswith("colour")]


def test_colour_files_are_denoised_in_colour(tmp_path: Path) -> None:
    image = np.clip(noisy(), 0, 255).astype(np.uint8)
    assert found_in(save_png(tmp_path / "photo", image))
    assert found_in(save_tiff(tmp_path / "photo", image, photometric="rgb"))
    opacity = np.full((*image.shape[:2], 1), 200, np.uint8)
    with_opacity = np.concatenate((image, opacity), -1)
    path = save_png(tmp_path / "opacity", with_opacity)
    assert found_in(path)
    assert (io.imread(tmp_path / "out" / path.name)[..., 3] == 200).all()


def save_npy(path: Path, image: NDArray[Any]) -> Path:
    np.save(path.with_suffix(".npy"), image)
    return path.with_suffix(".npy")


def save_npz(path: Path, image: NDArray[Any]) -> Path:
    np.savez(path.with_suffix(".npz"), image=image)
    return path.with_suffix(".npz")


def save_zarr(path: Path, image: NDArray[Any]) -> Path:
    zarr.create_array(path.with_suffix(".zarr"), data=image, chunks=(40,) * image.ndim)
    return path.with_suffix(".zarr")


def save_hdf5(path: Path, image: NDArray[Any]) -> Path:
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        file["image"] = image
    return path.with_suffix(".h5")


@pytest.mark.parametrize("axes", ["YXS", "SYX", "xsy"])
@pytest.mark.parametrize("save", [save_npy, save_npz, save_zarr, save_hdf5])
def test_arrays_in_files_have_their_colours_wherever_the_axes_say(
    save: Any, axes: str, tmp_path: Path
) -> None:
    image = noisy().astype(np.float32)
    order = ["YXS".index(axis) for axis in axes.upper()]
    path = save(tmp_path / "array", image.transpose(order).copy())
    [outcome] = normeq.denoise_files(path, tmp_path / "out", axes=axes, model=TOLD)
    assert outcome.status == "done", outcome.error
    found = normeq.images.read(tmp_path / "out" / path.name, axes=axes)
    expected = normeq.denoise(image, axes="YXS", model=TOLD).transpose(order)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def save_named_zarr(path: Path, image: NDArray[Any], names: tuple[str, ...]) -> Path:
    zarr.create_array(path.with_suffix(".zarr"), data=image, dimension_names=names)
    return path.with_suffix(".zarr")


def save_ome_zarr(path: Path, image: NDArray[Any], names: tuple[str, ...]) -> Path:
    group = zarr.open_group(path.with_suffix(".zarr"), mode="w", zarr_format=2)
    group.create_array("0", data=image, chunk_key_encoding={"name": "v2", "separator": "/"})
    described = {"version": "0.4", "axes": [{"name": name} for name in names]}
    group.attrs["multiscales"] = [described | {"datasets": [{"path": "0"}]}]
    return path.with_suffix(".zarr")


CHANNELS = {"axes": "CYX"}
FLUORESCENCE = {
    "OME-TIFF": lambda path, image: save_tiff(
        path.with_name("cells.ome.x"),
        image,
        ome=True,
        photometric="minisblack",
        metadata=CHANNELS,
    ),
    "ImageJ": lambda path, image: save_tiff(path, image, imagej=True, metadata=CHANNELS),
    "TIFF": lambda path, image: save_tiff(path, image, photometric="minisblack"),
    "OME-Zarr": lambda path, image: save_ome_zarr(path, image, ("c", "y", "x")),
    "OME-Zarr, stains": lambda path, image: save_ome_zarr(path, image, ("stain", "y", "x")),
    "Zarr, slices": lambda path, image: save_named_zarr(path, image, ("slice", "y", "x")),
}


@pytest.mark.parametrize("kind", FLUORESCENCE)
def test_fluorescence_channels_of_files_are_never_mixed(kind: str, tmp_path: Path) -> None:
    channels = np.moveaxis(noisy(), -1, 0).astype(np.float32)
    path = FLUORESCENCE[kind](tmp_path / "cells", channels)
    assert not found_in(path)
    # Frames of a stack share one estimate of the noise; told nothing, they share nothing at all.
    assert not found_in(path, noise="gaussian", existing="overwrite")
    clean = normeq.images.read(tmp_path / "out" / path.name)
    for found, channel in zip(clean, channels, strict=True):
        alone = normeq.denoise(channel, noise="gaussian")
        np.testing.assert_allclose(found, alone, atol=1e-5 * alone.std())


def test_samples_of_a_pixel_that_are_not_rgb_are_not_colours(tmp_path: Path) -> None:
    image = np.clip(noisy(), 0, 255).astype(np.uint8)
    path = save_tiff(tmp_path / "gray", image, photometric="minisblack", planarconfig="contig")
    assert not found_in(path)


@pytest.mark.parametrize("name", ["stain", "slice", "site", "sample"])
def test_named_axes_are_not_colours_because_of_their_first_letter(name: str) -> None:
    image = np.moveaxis(noisy(), -1, 0)
    clean = normeq.denoise(xarray.DataArray(image, dims=(name, "y", "x")), noise="gaussian")
    alone = normeq.denoise(image[0], noise="gaussian")
    np.testing.assert_allclose(clean.values[0], alone, atol=1e-5 * alone.std())


@pytest.mark.parametrize("name", ["S", "rgb"])
def test_axes_named_as_colours_are_colours(name: str) -> None:
    image = noisy()
    clean = normeq.denoise(xarray.DataArray(image, dims=("y", "x", name)), model=TOLD)
    np.testing.assert_array_equal(clean.values, normeq.denoise(image, axes="YXS", model=TOLD))


def test_stacks_of_photographs_in_files_are_denoised_in_tiles(tmp_path: Path) -> None:
    frames = np.stack([noisy(seed) for seed in range(2)]).astype(np.float32)
    path = save_tiff(tmp_path / "frames", frames, photometric="rgb", metadata={"axes": "TYXS"})
    [outcome] = normeq.denoise_files(path, tmp_path / "out", model=TOLD, tile=32)
    assert outcome.status == "done", outcome.error
    found = normeq.images.read(tmp_path / "out" / path.name)
    whole = normeq.denoise(frames, axes="TYXS", model=TOLD)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-5 * whole.std())


# What is told of their noise ------------------------------------------------------------------


def test_every_colour_has_its_own_level() -> None:
    noise = assumed(noisy())
    assert noise.transform is None
    assert noise.level * np.array(noise.relative) == pytest.approx(LEVELS, rel=0.1)
    stronger = assumed(noisy(), strength=2.0)
    assert stronger.level == pytest.approx(2 * noise.level)
    assert stronger.relative == noise.relative


def test_processed_photographs_have_more_noise_than_their_smooth_areas() -> None:
    rng = np.random.default_rng(0)
    noise = ndimage.gaussian_filter(rng.standard_normal(CLEAN.shape), (1.0, 1.0, 0))
    correlated = ndimage.gaussian_filter(CLEAN, (4, 4, 0)) + LEVELS * noise / noise.std()
    told = assumed(correlated)
    assert min(told.lengths) > 0.5
    assert told.level * np.array(told.relative) == pytest.approx(1.7 * LEVELS, rel=0.25)


def test_photon_noise_of_colours_goes_through_one_transform() -> None:
    gains = np.array([1.0, 2.0, 4.0])
    ramp = np.add.outer(np.linspace(20, 900, 160), np.linspace(0, 100, 192))
    rng = np.random.default_rng(0)
    image = np.stack([poisson_gaussian(ramp, gain, 1.0, rng) for gain in gains], -1)
    noise = assumed(image)
    assert noise.transform is not None
    signal = np.full((200, 200), 300.0)
    for gain, relative in zip(gains, noise.relative, strict=True):
        flat = poisson_gaussian(signal, gain, 1.0, rng)
        assert noise.transform.forward(flat).std() == pytest.approx(relative, rel=0.12)


def test_a_stated_model_holds_for_all_colours() -> None:
    model = NoiseModel.from_camera(2.0, 3.0, 0.0)
    assert assumed(noisy(), noise=model).relative is None


@pytest.mark.parametrize("tile", [None, 32])
@pytest.mark.parametrize("ensemble", [1, 2])
def test_the_levels_reach_the_network(tile: int | None, ensemble: Any) -> None:
    image = noisy()
    levels = assumed(image)
    clean = normeq.denoise(image, model=TOLD, channel_axis=-1, tile=tile, ensemble=ensemble)
    same = normeq.denoise(image, sigma=float(levels.level), model=TOLD, channel_axis=-1)
    assert np.abs(clean - same).max() > 1e-3 * image.std()
    if tile:
        whole = normeq.denoise(image, model=TOLD, channel_axis=-1, ensemble=ensemble)
        np.testing.assert_allclose(clean, whole, atol=1e-9 * image.std())


@settings(max_examples=10)
@given(
    gain=st.sampled_from([0.01, 0.5, 3.0, 250.0]),
    offsets=st.tuples(*[st.floats(-1e3, 1e3) for _ in range(3)]),
)
def test_units_do_not_matter_nor_the_offset_of_a_colour(
    gain: float, offsets: tuple[float, ...]
) -> None:
    image = noisy()
    clean = normeq.denoise(image, model=TOLD, channel_axis=-1)
    other = normeq.denoise(gain * image + offsets, model=TOLD, channel_axis=-1)
    precision = 1e-12 * (np.abs(offsets).max() + gain * np.abs(image).max())
    np.testing.assert_allclose(
        other, gain * clean + offsets, atol=1e-6 * gain * image.std() + precision
    )


def test_error_bars_of_colours_follow_their_levels() -> None:
    image = noisy(levels=np.array([5.0, 5.0, 20.0]))
    _, std = normeq.denoise(image, model=TOLD, channel_axis=-1, return_std=True, probes=8)
    assert std[..., 2].mean() > 2 * std[..., 0].mean()


def test_colours_together_cannot_be_adapted_so_far(tmp_path: Path) -> None:
    path = save_png(tmp_path / "photo", np.clip(noisy(), 0, 255).astype(np.uint8))
    with pytest.raises(UsageError, match=r"photographs in colour .* default-real"):
        normeq.adapt(path, steps=2)


def test_learned_transforms_are_for_single_channels() -> None:
    with pytest.raises(UsageError, match="single channels"):
        normeq.denoise(noisy(), model="default-color", channel_axis=-1, noise="learned")
