from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
import tifffile
from skimage import data

from normeq.errors import FileError, InputError
from normeq.folders import read_folder, to_unit


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
    assert str(folder) == "4 images (skipped 2 unreadable, 1 too small)"


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
    with pytest.raises(InputError, match="2 files are unreadable, and 5 images are smaller"):
        read_folder(mixed, 1, smallest=1000)
    with pytest.raises(FileError, match="is not a folder"):
        read_folder(tmp_path / "absent", 1)


def test_floating_point_images_are_taken_as_they_are():
    np.testing.assert_array_equal(to_unit(np.array([-0.5, 2.0])), [-0.5, 2.0])
