"""Error bars: what noise leaves in each pixel, whatever the units, tiles and kinds of array."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from skimage.data import camera
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.denoising.error_bars import ErrorBars
from normeq.errors import UsageError
from normeq.noise import Correlation
from normeq.noise.unit_probes import unit_probe

Floats = NDArray[np.float64]
CLEAN = camera()[128:192, 200:272].astype(np.float64)
NOISY = CLEAN + np.random.default_rng(0).normal(0, 12.0, CLEAN.shape)


def smoothed(image: Floats) -> Floats:
    return ndimage.uniform_filter(image, 3, mode="mirror")


def error_bars(image: Floats, **options: Any) -> Floats:
    return normeq.denoise(image, return_std=True, probes=2, **options)[1]


def test_the_error_bars_of_a_mean_over_nine_pixels_are_a_third_of_the_noise() -> None:
    noisy = np.random.default_rng(1).normal(0, 6.0, (128, 128))
    _, std = normeq.denoise(noisy, model=smoothed, return_std=True, probes=4)
    found = np.sqrt(np.mean(std[2:-2, 2:-2] ** 2))
    assert found == pytest.approx(noisy.std() / 3, rel=0.05)


def test_correlated_noise_leaves_more_of_itself_in_a_mean() -> None:
    noisy = ndimage.gaussian_filter(np.random.default_rng(1).normal(0, 30.0, (160, 160)), 0.8)
    _, std = normeq.denoise(noisy, model=smoothed, return_std=True, probes=4)
    left = smoothed(noisy).std()
    assert np.sqrt(np.mean(std**2)) == pytest.approx(left, rel=0.15)


def test_error_bars_are_the_spread_under_small_perturbations() -> None:
    rng = np.random.default_rng(2)
    clean, std = normeq.denoise(NOISY, 12.0, noise="gaussian", return_std=True, probes=6)
    moved = [
        normeq.denoise(NOISY + rng.normal(0, 0.12, NOISY.shape), 12.0, noise="gaussian") - clean
        for _ in range(4)
    ]
    assert np.sqrt(np.mean(std**2)) == pytest.approx(100 * np.std(moved), rel=0.05)


@settings(max_examples=3, deadline=None)
@given(gain=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_error_bars_scale_with_the_image(gain: float, offset: float) -> None:
    std = error_bars(NOISY[:40, :40])
    other = error_bars(gain * NOISY[:40, :40] + gain * offset)
    np.testing.assert_allclose(other, gain * std, rtol=1e-4, atol=1e-4 * gain * std.max())


def test_error_bars_of_signal_dependent_noise_scale_with_the_image() -> None:
    scene = np.linspace(1, 400, 128)[None] * np.ones((128, 1))
    noisy = normeq.noise.poisson_gaussian(scene, 4.0, 2.0, np.random.default_rng(0))
    std = error_bars(noisy, noise="poisson-gaussian")
    assert std[:, 96:].mean() > 1.5 * std[:, :32].mean()
    other = error_bars(8 * noisy + 1000, noise="poisson-gaussian")
    np.testing.assert_allclose(other, 8 * std, rtol=1e-3, atol=1e-3 * std.max())


def test_tiles_do_not_matter() -> None:
    np.testing.assert_allclose(error_bars(NOISY, tile=24), error_bars(NOISY), rtol=1e-4)
    blurred = ndimage.gaussian_filter(NOISY - CLEAN, 0.9) * 3 + CLEAN
    model = normeq.noise.NoiseModel.uniform(10.0, correlation=Correlation(((1.0, 0.6), (0.6, 0.4))))
    whole, tiled = (error_bars(blurred, noise=model, tile=tile) for tile in (None, 24))
    np.testing.assert_allclose(tiled, whole, rtol=1e-3, atol=1e-4 * whole.max())


def test_probes_have_the_correlation_they_should() -> None:
    field = unit_probe((3,), slice(0, 300), slice(0, 300), Correlation(((1.0, 0.5), (0.3, 0.15))))
    assert field.var() == pytest.approx(1.0, rel=0.02)
    assert np.mean(field[:, 1:] * field[:, :-1]) == pytest.approx(0.5, abs=0.02)
    assert np.mean(field[1:] * field[:-1]) == pytest.approx(0.3, abs=0.02)


def test_the_same_kind_of_array_comes_back_in_floating_point() -> None:
    stack = np.rint(np.stack([NOISY, NOISY[::-1]]) + 50).astype(np.uint16)
    clean, std = normeq.denoise(stack, return_std=True, probes=1)
    assert clean.dtype == np.uint16
    assert std.dtype == np.float32
    assert std.shape == stack.shape
    _, tensor = normeq.denoise(
        torch.from_numpy(stack.astype(np.float64)), return_std=True, probes=1
    )
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.float64
    np.testing.assert_allclose(tensor, std, rtol=0.02, atol=0.01)


def test_lazy_error_bars_equal_those_of_the_whole() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(NOISY, chunks=(32, 40))
    _, std = normeq.denoise(lazy, return_std=True, probes=2)
    assert std.chunks == lazy.chunks
    np.testing.assert_allclose(std.compute(), error_bars(NOISY), rtol=1e-4, atol=1e-5)


def test_pixels_without_a_value_have_no_error_bars_and_those_without_noise_none_but_0() -> None:
    holes = NOISY.copy()
    holes[10:14, 20:30] = np.nan
    std = error_bars(holes, nan="keep")
    assert np.array_equal(np.isnan(std), np.isnan(holes))
    levels = np.full(NOISY.shape, 12.0)
    levels[:, :20] = 0.0
    std = error_bars(NOISY, sigma=levels)
    assert (std[:, :20] == 0).all()
    assert (std[:, 40:] > 0).all()


def test_channels_and_mosaics_have_error_bars() -> None:
    channels = np.stack([NOISY, 2 * NOISY, NOISY.T[:64, :64].repeat(2, 1)[:, :72]], -1)
    std = error_bars(channels, axes="YXC")
    assert std.shape == channels.shape
    np.testing.assert_allclose(std[..., 0], error_bars(NOISY), rtol=0.02, atol=0.02)
    assert error_bars(NOISY, bayer="RGGB").shape == NOISY.shape


def test_strength_is_no_part_of_the_noise() -> None:
    # A smoothing function does not ask how strong the noise is, so only the noise decides.
    def smoothing(image: Floats, sigma: float) -> Floats:
        return smoothed(image)

    weak, strong = (error_bars(NOISY, sigma=12.0, model=smoothing, strength=s) for s in (0.5, 2.0))
    np.testing.assert_allclose(weak, strong)


@pytest.mark.parametrize("name", ["a.tif", "a.npy", "a.zarr", "a.png"])
def test_files_get_error_bars_beside_them(tmp_path: Path, name: str) -> None:
    stored = np.rint(NOISY + 50).clip(0, 255).astype(np.uint8)
    if name.endswith("zarr"):
        zarr = pytest.importorskip("zarr")
        zarr.save_array(tmp_path / name, stored)
    else:
        normeq.images.write(tmp_path / name, stored)
    [outcome] = normeq.denoise_files(tmp_path / name, std=True, probes=1)
    assert outcome.error is None
    written = Path(outcome.std or "")
    assert written.name == {"a.png": "a.denoised.std.ome.tif"}.get(
        name, name.replace(".", ".denoised.std.")
    )
    expected = normeq.denoise(stored, return_std=True, probes=1)[1]
    np.testing.assert_allclose(normeq.images.read(written), expected, rtol=1e-5)
    [again] = normeq.denoise_files(tmp_path / name, tmp_path / "out", std=True, probes=1)
    assert again.error is None
    [refused] = normeq.denoise_files(
        tmp_path / name, tmp_path / "out", std=True, probes=1, existing="skip"
    )
    assert refused.status == "skipped"


def test_existing_error_bars_are_not_replaced_unasked(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", NOISY)
    (tmp_path / "a.denoised.std.npy").write_text("mine")
    [outcome] = normeq.denoise_files(tmp_path / "a.npy", std=True, probes=1)
    assert outcome.status == "failed"
    assert "already exists" in (outcome.error or "")
    assert (tmp_path / "a.denoised.std.npy").read_text() == "mine"
    assert not (tmp_path / "a.denoised.npy").exists()


def test_units_of_a_file_are_those_of_its_error_bars(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    image = fits.PrimaryHDU(np.rint(NOISY * 10).astype(np.int16))
    image.header["BSCALE"], image.header["BZERO"] = 0.1, 5.0
    image.writeto(tmp_path / "a.fits")
    [outcome] = normeq.denoise_files(tmp_path / "a.fits", std=True, probes=1)
    assert outcome.error is None
    std = normeq.images.read(outcome.std or "")
    stored = fits.getdata(tmp_path / "a.fits")
    expected = normeq.denoise(np.asarray(stored, np.float64), return_std=True, probes=1)[1]
    np.testing.assert_allclose(std, expected, rtol=0.01, atol=0.01)


def test_too_few_probes_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        ErrorBars({}, 0)
    with pytest.raises(UsageError, match="probes is -1"):
        normeq.denoise(NOISY, return_std=True, probes=-1)


def test_the_command_writes_error_bars(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", NOISY[:32, :32])
    words = ["denoise", str(tmp_path / "a.npy"), "--std", "--probes", "1", "--json"]
    result = CliRunner().invoke(app, words)
    [file] = json.loads(result.stdout)["files"]
    assert Path(file["std"]).exists()
    refused = CliRunner().invoke(app, [*words, "--cluster", "local"])
    assert "--std cannot be computed on a cluster" in refused.output
