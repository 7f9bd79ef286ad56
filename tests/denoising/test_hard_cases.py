"""Files and folders that once ended in a traceback, or in other units than their own."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import tifffile
import zarr
from helpers.small_networks import tiny
from typer.testing import CliRunner

import normeq
from normeq._support.atomic import sync_tree
from normeq.cli import app
from normeq.denoising.missing import keep_apart
from normeq.errors import InputError
from normeq.images import open_image

RNG = np.random.default_rng(0)


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["denoise", *map(str, arguments), "--model", "median_filter"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_functions_see_fits_images_in_physical_units(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits", reason="needs the fits extra")
    counts = RNG.integers(0, 60000, (16, 16)).astype(np.uint16)
    fits.PrimaryHDU(counts).writeto(tmp_path / "a.fits")  # stored as int16 with BZERO 32768
    normeq.save(tiny("unet", "scale-equiv"), tmp_path / "net.safetensors", {})
    model = str(tmp_path / "net.safetensors")
    result = CliRunner().invoke(app, ["denoise", str(tmp_path / "a.fits"), "--model", model])
    assert result.exit_code == 0
    expected = normeq.denoise(counts, model=model)
    np.testing.assert_array_equal(fits.getdata(tmp_path / "a.denoised.fits"), expected)


@pytest.mark.parametrize(("dtype", "mark"), [("float32", -9999), ("int16", -32768), ("uint8", 0)])
def test_values_that_mean_none_stay_and_no_other_becomes_one(
    tmp_path: Path, dtype: str, mark: int
) -> None:
    image = RNG.integers(1, 4, (32, 32)).astype(dtype)
    holes = RNG.random(image.shape) < 0.2
    image[holes] = mark
    tag = (42113, "s", 0, str(mark), True)
    tifffile.imwrite(tmp_path / "map.tif", image, extratags=[tag])
    code, output = run(tmp_path / "map.tif")
    assert code == 1
    assert "marked as missing" in output
    code, output = run(tmp_path / "map.tif", "--nan", "keep")
    assert code == 0, output
    after = tifffile.imread(tmp_path / "map.denoised.tif")
    np.testing.assert_array_equal(after == mark, holes)
    assert after[~holes].min() >= 1
    assert after[~holes].max() <= 3


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8"])
def test_a_result_beside_the_mark(dtype: str) -> None:
    pixels = np.array([4, 5, 6], dtype)
    keep_apart(pixels, 5)
    assert pixels[1] != 5
    assert float(pixels[1]) == pytest.approx(5, abs=1)
    np.testing.assert_array_equal(pixels[[0, 2]], [4, 6])


@pytest.mark.parametrize("card", ["BSCALE  = 'abc     '", "BSCALE  ="])
def test_a_damaged_header_does_not_stop_the_others(tmp_path: Path, card: str) -> None:
    fits = pytest.importorskip("astropy.io.fits", reason="needs the fits extra")
    bad = tmp_path / "bad.fits"
    fits.PrimaryHDU(RNG.integers(0, 9, (8, 8)).astype(np.int16)).writeto(bad)
    header = bad.read_bytes()
    bad.write_bytes(header.replace(b"END".ljust(80), card.encode().ljust(80) + b"END", 1)[:5760])
    np.save(tmp_path / "good.npy", RNG.random((8, 8)))
    code, _ = run(bad, tmp_path / "good.npy")
    assert code in (0, 1)
    assert (tmp_path / "good.denoised.npy").exists()


@pytest.mark.parametrize("shape", [(40, 40), (1700, 30)])
def test_previews_of_images_with_holes(tmp_path: Path, shape: tuple[int, int]) -> None:
    image = RNG.random(shape)
    image[RNG.random(shape) < 0.3] = np.nan
    np.save(tmp_path / "holes.npy", image)
    np.save(tmp_path / "empty.npy", np.full((9, 9), np.nan))
    code, output = run(tmp_path / "holes.npy", tmp_path / "empty.npy", "--preview", "--nan", "keep")
    assert code == 0, output
    assert (tmp_path / "holes.denoised.preview.png").exists()


def test_a_name_too_long_for_the_system_is_a_sentence(tmp_path: Path) -> None:
    code, output = run(tmp_path / ("n" * 300 + ".tif"))
    assert code == 1
    assert "does not exist" in output


def test_opacity_in_a_plane_of_its_own_is_refused(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 255, (4, 20, 20)).astype(np.uint8)
    tifffile.imwrite(
        tmp_path / "a.tif",
        pixels,
        photometric="rgb",
        planarconfig="separate",
        extrasamples=["unassalpha"],
    )
    with pytest.raises(InputError, match="opacity as a plane of its own"):
        open_image(tmp_path / "a.tif")


def test_integers_cannot_hold_what_is_missing() -> None:
    image = RNG.random((8, 8))
    image[2, 2] = np.nan
    with pytest.raises(normeq.NormeqError, match="which uint8 cannot hold"):
        normeq.denoise(image, model="median_filter", nan="keep", output_dtype=np.uint8)


def test_a_read_only_zarr_is_copied_to_one_that_is_not(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "a.zarr", shape=(20, 20), dtype="f4", chunks=(10, 10))
    array[:] = RNG.random((20, 20))
    for folder, _, files in os.walk(tmp_path / "a.zarr"):
        for entry in [Path(folder), *(Path(folder, file) for file in files)]:
            entry.chmod(entry.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    code, output = run(tmp_path / "a.zarr")
    assert code == 0, output
    modes = [p.stat().st_mode for p in (tmp_path / "a.denoised.zarr").rglob("*")]
    assert modes
    assert all(mode & stat.S_IWUSR for mode in modes)


def test_a_pyramid_without_whole_factors_is_refused(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    for name, side in (("0", 16), ("1", 10)):
        level = root.create_array(name, shape=(side, side), dtype="f4", chunks=(8, 8))
        level[:] = 1.0
    root.attrs["multiscales"] = [
        {
            "version": "0.4",
            "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
            "datasets": [{"path": "0"}, {"path": "1"}],
        }
    ]
    with pytest.raises(InputError, match="from 16 pixels to 10"):
        open_image(tmp_path / "a.zarr")


def test_the_journal_outlives_a_kill_during_the_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = zarr.create_array(tmp_path / "a.zarr", shape=(20, 20), dtype="f4", chunks=(10, 10))
    array[:] = RNG.random((20, 20))

    class Killed(BaseException):
        pass

    def die(folder: Path) -> None:
        raise Killed

    monkeypatch.setattr("normeq.denoising.one_file.sync_tree", die)
    with pytest.raises(Killed):
        CliRunner().invoke(
            app,
            ["denoise", str(tmp_path / "a.zarr"), "--model", "median_filter"],
            catch_exceptions=False,
        )
    monkeypatch.setattr("normeq.denoising.one_file.sync_tree", sync_tree)
    result = CliRunner().invoke(
        app, ["denoise", str(tmp_path / "a.zarr"), "--model", "median_filter", "--json"]
    )
    assert '"resumed": true' in result.stdout
    shutil.rmtree(tmp_path / "a.zarr")
