from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample
from helpers.vendor_files import write_nd2

from normeq import images
from normeq.errors import FileError
from normeq.images import open_image

pytest.importorskip("nd2", reason="needs the nd2 extra")

STACK = sample((3, 2, 16, 20), "uint16")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_stack_of_channels_becomes_an_ome_tiff(tmp_path: Path, compressed: bool) -> None:
    write_nd2(tmp_path / "in.nd2", STACK, compressed)
    np.testing.assert_array_equal(images.read(tmp_path / "in.nd2"), STACK)
    copy(tmp_path / "in.nd2", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(STACK))
        assert after.series[0].axes == "ZCYX"
        for text in ("dye 1", 'PhysicalSizeX="0.3"', 'PhysicalSizeZ="1.5"'):
            assert text in str(after.ome_metadata)


def test_pixels_outlive_the_file(tmp_path: Path) -> None:
    write_nd2(tmp_path / "in.nd2", STACK[:, :1])
    source = open_image(tmp_path / "in.nd2")
    pixels = source.read(2, 0, 16)
    source.close()
    np.testing.assert_array_equal(pixels[..., 0], STACK[2, 0])
    np.testing.assert_array_equal(source.read(1, 0, 16)[..., 0], STACK[1, 0])
    source.close()


def test_frames_that_are_missing_are_not_zeros(tmp_path: Path) -> None:
    write_nd2(tmp_path / "in.nd2", STACK)
    content = (tmp_path / "in.nd2").read_bytes()
    lost = content.replace(b"ImageDataSeq|1!", b"ImageDataSoq|1!")
    (tmp_path / "in.nd2").write_bytes(lost)
    with pytest.raises(FileError, match="1 of its 3 frames are missing"):
        open_image(tmp_path / "in.nd2")


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    write_nd2(tmp_path / "in.nd2", STACK)
    content = (tmp_path / "in.nd2").read_bytes()
    for length in (0, 10, 200, len(content) // 2, len(content) - 10):
        (tmp_path / "in.nd2").write_bytes(content[:length])
        with pytest.raises(FileError, match="cannot be read as ND2"):
            open_image(tmp_path / "in.nd2")
    (tmp_path / "in.nd2").write_bytes(b"hello, world" * 100)
    with pytest.raises(FileError, match="cannot be read as ND2"):
        open_image(tmp_path / "in.nd2")
