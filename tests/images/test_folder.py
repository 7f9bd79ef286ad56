from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
import tifffile
from skimage import data

from normeq.errors import FileError, InputError
from normeq.images.folder import read_folder, to_unit


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    iio.imwrite(tmp_path / "b-colour.png", data.astronaut()[:40, :50])
    iio.imwrite(tmp_path / "a-gray.png", data.camera()[:30, :20])
    tifffile.imwrite(tmp_path / "c-stack.tif", np.zeros((2, 32, 33), np.uint16))
    iio.imwrite(tmp_path / "d-tiny.png", data.camera()[:5, :90])
    (tmp_path / "e-broken.png").write_bytes(b"no image at all")
    (tmp_path / "notes.txt").write_text("not an image either")
    (tmp_path / ".hidden").write_text("not looked at")
    return tmp_path


def test_a_folder_keeps_the_order_of_names_and_counts_what_it_skips(mixed):
    folder = read_folder(mixed, 1, smallest=16)
    assert folder.names == ["a-gray.png", "b-colour.png", "c-stack.tif[0]", "c-stack.tif[1]"]
    assert [image.shape for image in folder.images] == [
        (1, 30, 20),
        (1, 40, 50),
        (1, 32, 33),
        (1, 32, 33),
    ]
    assert str(folder) == "4 images (skipped: 1 smaller than 16 pixels, 2 unreadable)"


def test_colour_becomes_gray_as_in_the_published_sets(mixed):
    from PIL import Image

    gray = read_folder(mixed, 1).images[1][0]
    with Image.open(mixed / "b-colour.png") as image:
        reference = np.asarray(image.convert("L"), dtype=int)
    assert np.abs(gray - reference).max() <= 1
    assert gray.dtype == np.uint8


def test_gray_becomes_colour_by_repetition(mixed):
    colour = read_folder(mixed, 3, smallest=16).images
    assert {image.shape[0] for image in colour} == {3}
    np.testing.assert_array_equal(colour[0][0], colour[0][2])
    assert not np.array_equal(colour[1][0], colour[1][2])


def test_images_beyond_the_memory_wait_in_a_file_unchanged(mixed):
    here, elsewhere = read_folder(mixed, 1), read_folder(mixed, 1, in_memory=3000)
    assert [isinstance(image, np.memmap) for image in elsewhere.images].count(True) == 3
    for one, other in zip(here.images, elsewhere.images, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_a_folder_without_a_usable_image_is_refused(mixed, tmp_path):
    with pytest.raises(InputError, match="5 smaller than 1000 pixels, 2 unreadable"):
        read_folder(mixed, 1, smallest=1000)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="it is empty"):
        read_folder(tmp_path / "empty", 1)
    with pytest.raises(FileError, match="is not a readable folder"):
        read_folder(tmp_path / "absent", 1)


def test_images_that_are_not_between_black_and_white_are_skipped(tmp_path):
    good = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    hole = good.copy()
    hole[3, 4] = np.nan
    counts = (4000 * good).astype(np.int16)
    for name, image in {
        "a-unit": good,
        "b-counts": 4000 * good,
        "c-hole": hole,
        "d-signed": counts,
        "e-negative": counts - 2000,
    }.items():
        np.save(tmp_path / f"{name}.npy", image)
    folder = read_folder(tmp_path, 1)
    assert folder.names == ["a-unit.npy", "d-signed.npy"]
    assert folder.skipped == {"not between 0 and 1": 3}


def test_fits_is_read_in_its_units(tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    counts = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    fits.PrimaryHDU(counts).writeto(tmp_path / "a-unsigned.fits")  # stored as int16 with BZERO
    scaled = fits.PrimaryHDU(np.arange(64, dtype=np.float32).reshape(8, 8) / 63)
    scaled.scale("int16", bscale=1 / 1000, bzero=0.5)
    scaled.writeto(tmp_path / "b-scaled.fits")
    holes = fits.PrimaryHDU(np.full((8, 8), 7, np.int16))
    holes.header["BLANK"] = 7
    holes.writeto(tmp_path / "c-holes.fits")
    folder = read_folder(tmp_path, 1)
    assert folder.skipped == {"not between 0 and 1": 1}
    unsigned, floats = folder.images
    np.testing.assert_array_equal(unsigned[0], counts)
    assert unsigned.dtype == np.uint16
    np.testing.assert_allclose(floats[0], np.arange(64).reshape(8, 8) / 63, atol=1e-3)


def test_floating_point_images_are_taken_as_they_are():
    np.testing.assert_array_equal(to_unit(np.array([-0.5, 2.0])), [-0.5, 2.0])
