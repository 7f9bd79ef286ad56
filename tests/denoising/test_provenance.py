"""Every result says how it was made, where its format has a place for that."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import tifffile
import zarr
from helpers.file_samples import SAMPLES, write_sample
from helpers.image_samples import sample
from PIL import Image

from normeq import __version__, denoise_files, images

#: Formats that have no place for a note.
SILENT = {"in.npy", "in.npz", "in.nii", "in.nii.gz", "in.ppm"}
IMAGES = [name for name in SAMPLES if not name.endswith((".safetensors", ".toml", ".journal"))]


def halved(plane: Any) -> Any:
    return plane / 2


def denoised(path: Path) -> Path:
    [outcome] = denoise_files(path, model=halved, sigma=None)
    assert outcome.error is None
    return Path(outcome.output)


@pytest.mark.parametrize("name", [name for name in IMAGES if name not in SILENT])
def test_results_can_be_told_from_raw_files(tmp_path: Path, name: str) -> None:
    try:
        write_sample(tmp_path / name)
    except ImportError as error:
        pytest.skip(f"needs {error.name}")
    result = denoised(tmp_path / name)
    files = [file for file in result.rglob("*") if file.is_file()] if result.is_dir() else [result]
    text = b"".join(file.read_bytes() for file in files)
    text = gzip.decompress(text) if name.endswith(".gz") else text
    noted = f"normeq {__version__}".encode() in text
    assert noted, f"let `write` note its provenance in {name}, or add it to SILENT in {__file__}"
    before = images.read(tmp_path / name)
    after = images.read(result)  # OME-TIFF leaves axes of length one out
    np.testing.assert_allclose(np.squeeze(after), np.squeeze(np.rint(before / 2)), atol=0.5)


def check(note: dict[str, Any], path: Path) -> None:
    assert note["program"] == f"normeq {__version__}"
    assert note["input"] == path.name
    assert note["parameters"]["nan"] == "raise"
    assert len(note["model_digest"]) == 64
    if path.is_file():
        assert note["input_digest"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_png(tmp_path: Path) -> None:
    images.write(tmp_path / "in.png", sample((8, 9), "uint8"))
    with Image.open(denoised(tmp_path / "in.png")) as after:
        assert after.info["Software"].startswith("denoised by normeq")
        check(json.loads(after.info["normeq"]), tmp_path / "in.png")


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(tmp_path: Path, version: Any) -> None:
    data = sample((8, 9), "uint8")
    zarr.create_array(tmp_path / "in.zarr", data=data, zarr_format=version, attributes={"a": 1})
    after = zarr.open_array(denoised(tmp_path / "in.zarr"), mode="r")
    assert after.attrs["a"] == 1
    check(dict(after.attrs)["normeq"], tmp_path / "in.zarr")


def test_fits_with_room_in_the_header_and_without(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits", reason="needs the fits extra")
    first, second = sample((13, 17), "int16"), sample((2, 9, 8), "float32")
    for cards in (0, 15, 40):
        unit = fits.PrimaryHDU(first)
        for number in range(cards):
            unit.header[f"KEY{number}"] = number
        path = tmp_path / f"in{cards}.fits"
        fits.HDUList([unit, fits.ImageHDU(second, name="SCI")]).writeto(path, checksum=True)
        result = denoised(path)
        with fits.open(result, checksum=True) as after:  # a wrong sum is a warning, thus an error
            np.testing.assert_array_equal(after[0].data, np.rint(first / 2))
            np.testing.assert_allclose(after["SCI"].data, second / 2)
            for unit in after:
                line, *rest = list(unit.header["HISTORY"])
                assert line.startswith("denoised by normeq")
                check(json.loads("".join(f"{text:<72}" for text in rest)), path)
            assert after[0].header.get("KEY14") == (14 if cards else None)


def test_ome_tiff(tmp_path: Path) -> None:
    about = {"axes": "ZYX", "UUID": "urn:uuid:0"}
    tifffile.imwrite(tmp_path / "in.ome.tif", sample((2, 16, 18), "uint16"), metadata=about)
    once = denoised(tmp_path / "in.ome.tif")
    twice = denoised(once)
    roots = []
    for path in (tmp_path / "in.ome.tif", once, twice):
        with tifffile.TiffFile(path) as file:
            assert file.series[0].axes == "ZYX"
            roots.append(ElementTree.fromstring(str(file.ome_metadata)))
            if path != tmp_path / "in.ome.tif":
                assert "denoised by normeq" in file.pages.first.software
    names = [root.attrib["UUID"] for root in roots]
    assert len(set(names)) == 3
    notes = [element for element in roots[2].iter() if element.tag.endswith("CommentAnnotation")]
    assert len({note.attrib["ID"] for note in notes}) == len(notes) == 2
    assert len([e for e in roots[2] if e.tag.endswith("StructuredAnnotations")]) == 1
    check(json.loads(notes[0][0].text or ""), tmp_path / "in.ome.tif")
    check(json.loads(notes[1][0].text or ""), once)


def test_a_record_beside_on_request(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", sample((8, 9), "uint8"))
    denoise_files(tmp_path / "in.npy", tmp_path / "out.npy", model=halved, record=True)
    check(json.loads((tmp_path / "out.npy.json").read_text()), tmp_path / "in.npy")
