"""The registry: every format is what it declares."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
import zarr
from helpers.file_samples import SAMPLES
from helpers.image_samples import sample
from PIL import Image

from normeq import images
from normeq.errors import FileError, InputError, UsageError
from normeq.images import FORMATS, extension_of, format_of, is_store, open_image, result_extension
from normeq.images import formats as registry
from normeq.images.formats import Format


def test_extensions_are_lower_case_and_belong_to_one_format() -> None:
    extensions = [extension for format in FORMATS for extension in format.extensions]
    assert len(extensions) == len(set(extensions))
    assert all(extension == extension.lower() and extension[0] == "." for extension in extensions)


def test_every_format_has_a_sample() -> None:
    """Damage, provenance and round trips are tested on samples."""
    sampled = {format_of(Path(name)) for name in SAMPLES}
    missing = [format.name for format in FORMATS if format not in sampled]
    assert not missing, f"give {missing} a sample in SAMPLES, in tests/helpers/file_samples.py"


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_results_are_in_a_format_that_is_known(format: Format) -> None:
    for extension in format.extensions:
        result = format_of(Path(f"a{result_extension(Path(f'a{extension}'))}"))
        assert result is not None
        assert result.result is None


@pytest.mark.parametrize(
    ("name", "extension", "result"),
    [
        ("a.b.tif", ".tif", ".tif"),
        ("A.OME.TIF", ".OME.TIF", ".OME.TIF"),
        ("a.JPG", ".JPG", ".png"),
        (".tif", "", ""),
        ("a.xyz", "", ""),
        ("a.ome.zarr", ".ome.zarr", ".ome.zarr"),
    ],
)
def test_extensions(name: str, extension: str, result: str) -> None:
    assert (extension_of(Path(name)), result_extension(Path(name))) == (extension, result)


def test_a_zarr_may_have_any_name(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "plain", data=np.zeros((4, 4), np.uint8))
    assert is_store(tmp_path / "plain")
    assert result_extension(tmp_path / "plain") == ".zarr"
    assert not is_store(tmp_path)


def test_an_unknown_extension_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").touch()
    with pytest.raises(
        FileError,
        match=r"unknown extension; the known ones are \.tif .*\.nii \.nii\.gz \(normeq\[ni",
    ):
        open_image(tmp_path / "a.xyz")
    with pytest.raises(UsageError, match=r"\.tif, \.png, \.npy"):
        images.write(tmp_path / "a.jpg", np.zeros((4, 4), np.uint8))


def test_a_library_that_is_missing_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(module: str) -> None:
        raise ModuleNotFoundError("No module named 'reader'", name="reader")

    monkeypatch.setattr(registry, "import_module", missing)
    format = Format("XYZ", (".xyz",), "xyz:XyzSource", extra="xyz")
    with pytest.raises(InputError, match=r"XYZ needs the reader package.*normeq\[xyz\]"):
        format.open(tmp_path / "a.xyz", None)


@pytest.mark.parametrize("name", ["a.tif", "a.png", "a.jpg", "a.npy", "a.zarr", "a.fits"])
def test_a_closed_file_is_read_again_without_opening_its_header(tmp_path: Path, name: str) -> None:
    image = sample((20, 24), "uint8")
    path = tmp_path / name
    if name.endswith(".zarr"):
        zarr.create_array(path, data=image)
    elif name.endswith(".jpg"):
        Image.fromarray(image).save(path)
    elif name.endswith(".fits"):
        pytest.importorskip("astropy.io.fits").PrimaryHDU(image).writeto(path)
    elif name.endswith(".tif"):
        tifffile.imwrite(path, image, compression="zlib")
    else:
        images.write(path, image)
    expected = images.read(path)
    source = open_image(path)
    source.close()
    np.testing.assert_array_equal(source.read(0, 0, 20)[..., 0], expected)
    target = tmp_path / f"out{result_extension(path)}"
    source.write(target, [images.Band(0, 0, source.read(0, 0, 20))])
    source.close()
    np.testing.assert_array_equal(images.read(target), expected)
