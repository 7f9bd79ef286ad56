"""Slides and stacks of vendors become OME-TIFFs."""

import logging
from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample
from helpers.vendor_files import write_lsm, write_stk, write_svs

from normeq import images
from normeq.errors import FileError
from normeq.images import open_image, result_extension


def test_a_slide_becomes_an_ome_tiff_without_its_label(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slide = sample((48, 64, 3), "uint8")
    write_svs(tmp_path / "in.svs", slide)
    np.testing.assert_array_equal(images.read(tmp_path / "in.svs").squeeze(), slide)
    assert result_extension(tmp_path / "in.svs") == ".ome.tif"
    with caplog.at_level(logging.WARNING):
        copy(tmp_path / "in.svs", tmp_path / "out.ome.tif")
    assert "left out of the result: thumbnail, label, macro" in caplog.text
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(slide))
        assert after.is_ome
        assert 'PhysicalSizeX="0.499"' in str(after.ome_metadata)


def test_a_confocal_stack_keeps_its_depth_and_voxel_size(tmp_path: Path) -> None:
    stack = sample((3, 32, 40), "uint16")
    write_lsm(tmp_path / "in.lsm", stack)
    with open_image(tmp_path / "in.lsm") as source:
        assert source.shape[-2:] == (32, 40)
        assert source.frames == 3
    copy(tmp_path / "in.lsm", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(stack))
        assert after.series[0].axes == "ZYX"
        assert 'PhysicalSizeZ="1.0"' in str(after.ome_metadata)


def test_a_metamorph_stack_keeps_its_planes_and_units(tmp_path: Path) -> None:
    stack = sample((3, 20, 24), "uint16")
    write_stk(tmp_path / "in.stk", stack)
    np.testing.assert_array_equal(images.read(tmp_path / "in.stk"), stack)
    copy(tmp_path / "in.stk", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(stack))
        assert after.series[0].axes == "ZYX"
        for size in ('PhysicalSizeX="0.25"', 'PhysicalSizeY="0.25"', 'PhysicalSizeZ="1.5"'):
            assert size in str(after.ome_metadata)


def test_a_truncated_stack_is_a_sentence(tmp_path: Path) -> None:
    write_stk(tmp_path / "in.stk", sample((3, 20, 24), "uint16"))
    content = (tmp_path / "in.stk").read_bytes()
    (tmp_path / "in.stk").write_bytes(content[:2000])
    with pytest.raises(FileError, match="cannot be read as TIFF"):
        open_image(tmp_path / "in.stk")
