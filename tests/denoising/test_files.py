"""Denoising files: whole or not at all, or refused."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from helpers.image_samples import sample
from numpy.typing import NDArray

from normeq import images
from normeq.denoising.file_options import FileOptions
from normeq.denoising.files import denoise_files, outcomes
from normeq.denoising.outcome import Outcome
from normeq.denoising.preparation import Choice
from normeq.images.formats import Format, result_extension
from normeq.images.source import ImageFile

fits = pytest.importorskip("astropy.io.fits", reason="needs the fits extra")


def halved(plane: NDArray[Any]) -> NDArray[Any]:
    return plane / 2


def run(path: Path, target: Path, model: Callable[..., Any] = halved, **options: Any) -> Outcome:
    [outcome] = denoise_files(path, target, model=model, **options)
    return outcome


def write_sample(path: Path, image: NDArray[Any]) -> None:
    if path.suffix == ".fits":
        fits.PrimaryHDU(image).writeto(path)
    elif path.suffix == ".zarr":
        zarr.create_array(path, data=image, chunks=(1,) * (image.ndim - 2) + (8, 8))
    elif path.suffix == ".jpg":
        from PIL import Image

        Image.fromarray(image).save(path)
    elif path.suffix == ".btf":
        tifffile.imwrite(path, image, compression="zlib", bigtiff=True)
    elif path.name.endswith((".ome.tif", ".ij.tif")):
        stack = np.stack([image, image + 1, image + 2])
        tifffile.imwrite(path, stack, imagej=".ij" in path.suffixes, metadata={"axes": "ZYX"})
    else:
        images.write(path, image)


EXTENSIONS = [".tif", ".btf", ".ome.tif", ".ij.tif", ".png", ".jpg", ".npy", ".zarr", ".fits"]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_header_is_opened_once(
    tmp_path: Path, extension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"in{extension}"
    write_sample(path, sample((20, 30), "uint8"))
    opened, open_file = [], Format.open

    def counted(format: Format, path: Path, *about: Any) -> ImageFile:
        opened.append(path)
        return open_file(format, path, *about)

    monkeypatch.setattr(Format, "open", counted)
    assert run(path, tmp_path / f"out{result_extension(path)}").error is None
    assert opened == [path]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_every_format_is_denoised(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"in{extension}"
    write_sample(path, sample((20, 30), "uint8"))
    target = tmp_path / ("out.png" if extension == ".jpg" else f"out{extension}")
    outcome = run(path, target)
    assert outcome.error is None
    before = images.read(path)
    np.testing.assert_array_equal(images.read(target), np.rint(before / 2).astype(before.dtype))
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([path.name, target.name])
    assert outcome.as_dict()["dtype"] == "uint8"


def test_opacity_is_copied(tmp_path: Path) -> None:
    image = sample((20, 30, 4), "uint8")
    images.write(tmp_path / "in.png", image)
    run(tmp_path / "in.png", tmp_path / "out.png")
    after = images.read(tmp_path / "out.png")
    np.testing.assert_array_equal(after[..., 3], image[..., 3])
    np.testing.assert_array_equal(after[..., :3], np.rint(image[..., :3] / 2))


def test_units_of_fits_reach_sigma_and_blanks_stay(tmp_path: Path) -> None:
    unit = fits.PrimaryHDU(sample((8, 9), "int16"))
    unit.data[0, 0] = -5
    unit.header["BSCALE"], unit.header["BZERO"], unit.header["BLANK"] = 0.5, 100.0, -5
    unit.writeto(tmp_path / "in.fits")
    outcome = run(tmp_path / "in.fits", tmp_path / "out.fits")
    assert "1 of the 72 pixels" in str(outcome.error)

    def minus_sigma(plane: NDArray[Any], sigma: float) -> NDArray[Any]:
        return plane - sigma

    options = {"nan": "keep", "sigma": 3.0}  # 3 physical units are 6 stored ones
    assert run(tmp_path / "in.fits", tmp_path / "out.fits", minus_sigma, **options).error is None
    before, after = images.read(tmp_path / "in.fits"), images.read(tmp_path / "out.fits")
    assert after[0, 0] == -5
    expected = before.ravel()[1:] - 6
    expected[expected == -5] = -4  # which would mean that there is no value
    np.testing.assert_array_equal(after.ravel()[1:], expected)


def test_existing_outputs(tmp_path: Path) -> None:
    path, target = tmp_path / "in.npy", tmp_path / "out.npy"
    np.save(path, sample((8, 8), "float32"))
    target.write_text("mine")
    assert "--overwrite or --skip-existing" in str(run(path, target).error)
    assert run(path, target, existing="skip").status == "skipped"
    assert target.read_text() == "mine"
    assert run(path, target, existing="overwrite").status == "done"
    assert np.load(target).shape == (8, 8)


def test_a_zarr_replaces_a_zarr(tmp_path: Path) -> None:
    for name, level in (("in", 4), ("out", 1)):
        zarr.create_array(tmp_path / f"{name}.zarr", data=np.full((8, 8), level, np.uint8))
    assert run(tmp_path / "in.zarr", tmp_path / "out.zarr", existing="overwrite").error is None
    assert images.read(tmp_path / "out.zarr")[0, 0] == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failure_leaves_nothing_and_stops_nobody(tmp_path: Path) -> None:
    names = ["bad.tif", "good.npy", "missing.png", "odd.xyz"]
    (tmp_path / "bad.tif").write_bytes(b"II*\0 not a TIFF")
    np.save(tmp_path / "good.npy", sample((8, 8), "uint8"))
    (tmp_path / "odd.xyz").touch()
    paths = [tmp_path / name for name in names]
    targets = [tmp_path / "out" / name for name in names]
    found = list(outcomes(paths, targets, Choice(halved), FileOptions()))
    assert [outcome.status for outcome in found] == ["failed", "done", "failed", "failed"]
    for outcome in found:
        assert outcome.error is None or outcome.error.startswith(outcome.input)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["good.npy"]


def test_a_failure_half_way_leaves_nothing(tmp_path: Path) -> None:
    stack = sample((3, 8, 8), "float32")
    stack[2, 4, 4] = np.nan
    tifffile.imwrite(tmp_path / "in.tif", stack, photometric="minisblack")
    assert "1 of the 64 pixels of plane 2" in str(
        run(tmp_path / "in.tif", tmp_path / "o.tif").error
    )
    assert [file.name for file in tmp_path.iterdir()] == ["in.tif"]


def test_what_a_denoiser_raises_is_about_that_file(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", sample((8, 8), "uint8"))

    def broken(plane: NDArray[Any]) -> NDArray[Any]:
        raise RuntimeError("out of something\nand more")

    error = run(tmp_path / "in.npy", tmp_path / "out.npy", broken).error
    assert error == f"{tmp_path / 'in.npy'}: RuntimeError: out of something"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_places_without_permission(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", sample((8, 8), "uint8"))
    (tmp_path / "file").touch()
    outcome = run(tmp_path / "in.npy", tmp_path / "file" / "out.npy")
    assert "cannot be written" in str(outcome.error)
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        outcome = run(tmp_path / "in.npy", tmp_path / "locked" / "out.npy")
        assert "cannot be written" in str(outcome.error)


def test_too_many_pixels_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", sample((8, 8), "uint8"))
    outcome = run(tmp_path / "in.npy", tmp_path / "out.npy", max_pixels=63)
    assert "--max-pixels" in str(outcome.error)


# Damage --------------------------------------------------------------------------------------


def damaged(data: bytes, seed: int) -> bytes:
    """Cut a file short, or flip some of its bytes."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return data[: int(rng.integers(0, len(data)))]
    changed = bytearray(data)
    # Headers come first or last in these formats: they are hit as often as the pixels.
    place = [rng.integers(0, 200), rng.integers(-200, 0), rng.integers(0, len(data))][seed % 3]
    for offset in range(int(rng.integers(1, 5))):
        changed[(int(place) + offset) % len(changed)] ^= int(rng.integers(1, 256))
    return bytes(changed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_damaged_files_never_give_a_traceback_or_a_part_of_a_result(
    tmp_path: Path, extension: str
) -> None:
    path = tmp_path / f"in{extension}"
    target = tmp_path / "out" / ("out.png" if extension == ".jpg" else f"out{extension}")
    write_sample(path, sample((20, 30), "uint16" if extension in (".tif", ".npy") else "uint8"))
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    whole = {file: file.read_bytes() for file in files}
    expected = np.rint(images.read(path) / 2)
    failures = 0
    for seed in range(40):
        file = files[seed % len(files)]
        file.write_bytes(damaged(whole[file], seed))
        outcome = run(path, target, existing="overwrite", max_pixels=10**7)
        file.write_bytes(whole[file])
        left = (
            sorted(p.name for p in (tmp_path / "out").iterdir()) if target.parent.exists() else []
        )
        if outcome.status == "failed":
            failures += 1
            assert outcome.error is not None
            assert "\n" not in outcome.error
            assert "Error: " not in outcome.error, "an exception that nobody foresaw"
            partial = [name for name in left if "partial" in name]
            assert not partial or (path.is_dir() and partial == [f".{target.name}.partial"])
        else:
            assert target.name in left
            if seed % 2 and not path.is_dir():  # cut short, but not by anything that matters
                np.testing.assert_array_equal(images.read(target), expected)
    assert failures >= 10
