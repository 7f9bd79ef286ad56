"""Results in another format: written where nothing is lost, refused with what would be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from helpers.file_samples import write_sample
from helpers.image_samples import sample
from helpers.vendor_files import write_lsm, write_nd2
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from typer.testing import CliRunner

from normeq import denoise_files, images
from normeq.cli import app
from normeq.images import open_image


def halved(plane: Any) -> Any:
    return plane / 2


def result(path: Path, name: str) -> Path:
    """Denoise an image into a file of this name beside it."""
    [outcome] = denoise_files(path, path.parent / name, model=halved)
    assert outcome.status == "done", outcome.error
    return Path(outcome.output)


def refusal(path: Path, name: str) -> str:
    """Return why an image is not written as a file of this name, which must not be there."""
    [outcome] = denoise_files(path, path.parent / name, model=halved)
    assert outcome.status == "failed"
    assert not (path.parent / name).exists()
    return str(outcome.error)


@pytest.mark.parametrize("source", ["in.tif", "in.npy", "in.pgm"])
@pytest.mark.parametrize("target", ["out.png", "out.npy", "out.tif", "out.ome.zarr"])
def test_a_plane_can_be_written_in_any_format(tmp_path: Path, source: str, target: str) -> None:
    image = sample((20, 24), "uint8")
    if source == "in.pgm":
        Image.fromarray(image).save(tmp_path / source)
    else:
        images.write(tmp_path / source, image)
    after = images.read(result(tmp_path / source, target))
    np.testing.assert_array_equal(after, np.rint(image / 2))
    assert after.dtype == np.uint8


@pytest.mark.parametrize("extension", [".ppm", ".tif"])
def test_colours_are_written_together(tmp_path: Path, extension: str) -> None:
    image = sample((20, 24, 3), "uint8")
    Image.fromarray(image).save(tmp_path / f"in{extension}")
    with Image.open(result(tmp_path / f"in{extension}", "out.png")) as after:
        assert after.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(after), np.rint(image / 2))
    store = zarr.open_array(result(tmp_path / f"in{extension}", "out.zarr") / "0")
    np.testing.assert_array_equal(store[:], np.moveaxis(np.rint(image / 2), -1, 0))


def test_pixel_size_is_converted(tmp_path: Path) -> None:
    image = sample((20, 24), "uint16")
    tifffile.imwrite(tmp_path / "in.tif", image, resolution=(300, 300), resolutionunit="INCH")
    with Image.open(result(tmp_path / "in.tif", "out.png")) as after:
        assert after.info["dpi"] == pytest.approx((300, 300), rel=1e-4)
    assert "its pixel size" in refusal(tmp_path / "in.tif", "out.npy")
    with open_image(result(tmp_path / "in.tif", "out.ome.zarr")) as source:
        assert source.calibration.sizes == pytest.approx({"X": 84.6667, "Y": 84.6667}, rel=1e-4)


def test_a_stack_keeps_axes_sizes_and_channels_as_ome_zarr(tmp_path: Path) -> None:
    stack = sample((2, 3, 20, 24), "uint16")
    about: dict[str, Any] = {"axes": "ZCYX", "Channel": {"Name": ["a", "b", "c"]}}
    about |= {"PhysicalSizeX": 0.2, "PhysicalSizeY": 0.2, "PhysicalSizeZ": 1.5}
    tifffile.imwrite(
        tmp_path / "in.ome.tif", stack, metadata=about, ome=True, photometric="minisblack"
    )
    target = result(tmp_path / "in.ome.tif", "out.ome.zarr")
    with open_image(target) as source:
        assert source.axes == "CZYX"
        assert source.calibration.sizes == {"X": 0.2, "Y": 0.2, "Z": 1.5}
        assert list(source.calibration.channels) == ["a", "b", "c"]
    np.testing.assert_array_equal(images.read(target), np.swapaxes(np.rint(stack / 2), 0, 1))
    attributes = dict(zarr.open_group(target).attrs)
    assert attributes["multiscales"][0]["version"] == "0.4"
    assert attributes["normeq"]["input"] == "in.ome.tif"
    assert "its attributes normeq" in refusal(target, "again.ome.tif")


def test_a_large_result_has_a_pyramid(tmp_path: Path) -> None:
    image = sample((600, 1100), "float32")
    images.write(tmp_path / "in.npy", image)
    group = zarr.open_group(result(tmp_path / "in.npy", "out.zarr"))
    assert [group[level].shape for level in "012"] == [(600, 1100), (300, 550), (150, 275)]
    means = (image / 2).reshape(300, 2, 550, 2).mean((1, 3))
    np.testing.assert_allclose(group["1"][:], means, rtol=1e-6)


@pytest.mark.parametrize("name", ["in.lsm", "in.nd2"])
def test_what_is_not_written_becomes_ome_zarr_too(tmp_path: Path, name: str) -> None:
    stack = sample((3, 32, 40), "uint16")
    if name == "in.nd2":
        pytest.importorskip("nd2")
        write_nd2(tmp_path / name, stack[:, np.newaxis])
    else:
        write_lsm(tmp_path / name, stack)
    target = result(tmp_path / name, "out.ome.zarr")
    np.testing.assert_array_equal(images.read(target), np.rint(stack / 2))
    with open_image(target) as source:
        assert source.axes == "ZYX"
        assert set(source.calibration.sizes) == {"X", "Y", "Z"}
    assert "would lose" in refusal(tmp_path / name, "out.npy")


def _with_text(path: Path) -> None:
    tifffile.imwrite(path, sample((16, 16), "uint8"), description="exposure 20 ms")


def _with_date(path: Path) -> None:
    tifffile.imwrite(path, sample((16, 16), "uint8"), datetime=True)


def _stack(path: Path) -> None:
    tifffile.imwrite(path, sample((3, 16, 16), "uint8"), photometric="minisblack")


def _floats(path: Path) -> None:
    images.write(path, sample((16, 16), "float32"))


def _imagej(path: Path) -> None:
    about = {"Info": "exposure 20 ms"}
    tifffile.imwrite(path, sample((16, 16), "uint8"), imagej=True, metadata=about)


def _ome(path: Path) -> None:
    about = {"Description": "cells", "Channel": {"Name": "GFP", "EmissionWavelength": 509}}
    tifffile.imwrite(path, sample((16, 16), "uint8"), ome=True, metadata=about)


@pytest.mark.parametrize(
    ("write", "target", "lost"),
    [
        (_with_text, "out.png", "ImageDescription"),
        (_with_text, "out.zarr", "ImageDescription"),
        (_with_date, "out.png", "DateTime"),
        (_stack, "out.png", "axes QYX, since it holds one plane"),
        (_floats, "out.png", "float32, since it holds uint8 and uint16"),
        (_imagej, "out.png", "Info"),
        (_ome, "out.png", "Channel EmissionWavelength"),
        (_ome, "out.zarr", "Description"),
    ],
)
def test_what_would_be_lost_is_named(tmp_path: Path, write: Any, target: str, lost: str) -> None:
    write(tmp_path / "in.tif")
    sentence = refusal(tmp_path / "in.tif", target)
    assert lost in sentence
    assert "the result can be .tif" in sentence


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("in.fits", "astropy"),
        ("in.nii", "nibabel"),
        ("in.dcm", "pydicom"),
        ("in.mrc", "mrcfile"),
        ("in.h5", "h5py"),
    ],
)
def test_headers_are_not_dropped(tmp_path: Path, name: str, library: str) -> None:
    pytest.importorskip(library)
    write_sample(tmp_path / name)
    for target in ("out.png", "out.npy", "out.ome.tif", "out.zarr"):
        assert "its header" in refusal(tmp_path / name, target)


def test_texts_and_profiles_of_pictures_are_not_dropped(tmp_path: Path) -> None:
    write_sample(tmp_path / "in.jpg")
    assert "eXIf" in refusal(tmp_path / "in.jpg", "out.tif")
    result(tmp_path / "in.jpg", "out.png")


def test_the_time_of_the_last_change_is_not_kept(tmp_path: Path) -> None:
    texts = PngInfo()
    texts.add(b"tIME", bytes([7, 234, 11, 16, 12, 0, 0]))
    Image.fromarray(sample((16, 16), "uint8")).save(tmp_path / "in.png", pnginfo=texts)
    written = images.read(result(tmp_path / "in.png", "out.tif"))
    assert (written.shape, written.dtype) == ((16, 16), np.uint8)


def test_attributes_of_a_zarr_are_not_dropped(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "in.zarr", data=sample((16, 16), "uint8"))
    result(tmp_path / "in.zarr", "a.png")
    array.attrs["exposure"] = 20
    assert "its attributes exposure" in refusal(tmp_path / "in.zarr", "b.png")


@pytest.mark.parametrize("names", [("in.fits", "out.fits.gz"), ("in.fits.gz", "out.fits")])
def test_a_result_is_compressed_if_its_name_says_so(tmp_path: Path, names: tuple[str, str]) -> None:
    pytest.importorskip("astropy")
    write_sample(tmp_path / names[0])
    target = result(tmp_path / names[0], names[1])
    content = target.read_bytes()
    assert (content[:2] == b"\x1f\x8b") == (target.suffix == ".gz")
    content = gzip.decompress(content) if target.suffix == ".gz" else content
    assert content.startswith(b"SIMPLE")
    images.read(target)


def test_the_command_line_refuses_before_any_work(tmp_path: Path) -> None:
    _stack(tmp_path / "in.tif")
    arguments = ["denoise", str(tmp_path / "in.tif"), "--model", "median_filter", "-o"]
    run = CliRunner().invoke(app, [*arguments, str(tmp_path / "out.png"), "--dry-run"])
    assert run.exit_code == 1
    assert "would lose axes QYX" in run.stderr
    run = CliRunner().invoke(app, [*arguments, str(tmp_path / "out.fits")])
    assert run.exit_code == 2
    assert "cannot be written in this format" in run.stderr
    run = CliRunner().invoke(app, [*arguments, str(tmp_path / "out.npy"), "--json"])
    assert run.exit_code == 0, run.stderr
    assert json.loads(run.stdout)["done"] == 1
