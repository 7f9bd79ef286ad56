"""Slides and stacks of vendors, built tag by tag as their scanners write them."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.images import open_image, result_extension

LSM_KEYS = {
    "MagicNumber": 67127628,
    "ScanType": 0,  # planes in X, Y and Z
    "VoxelSizeX": 2e-7,
    "VoxelSizeY": 2e-7,
    "VoxelSizeZ": 1e-6,
    "DimensionChannels": 1,
    "DimensionTime": 1,
}


def write_svs(path: Path, slide: np.ndarray) -> None:
    with tifffile.TiffWriter(path) as writer:
        about: dict[str, Any] = {"photometric": "rgb", "metadata": None}
        aperio = "Aperio Image Library v11\n%d |AppMag = 20|MPP = 0.4990"
        writer.write(slide, tile=(16, 16), description=aperio % 0, **about)
        writer.write(slide[::4, ::4], description=aperio % 1, **about)
        for name, kind in (("label", 1), ("macro", 9)):
            text = f"Aperio Image Library v11\n{name} 20x20"
            writer.write(slide[:20, :20], subfiletype=kind, description=text, **about)


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


def write_lsm(path: Path, stack: np.ndarray) -> None:
    """Write a confocal stack: each plane is followed by its thumbnail."""
    info = np.zeros((), np.dtype(tifffile.TIFF.CZ_LSMINFO))
    sides = dict(zip(("DimensionZ", "DimensionY", "DimensionX"), stack.shape, strict=True))
    for name, value in (LSM_KEYS | sides | {"StructureSize": info.itemsize}).items():
        info[name] = value
    with tifffile.TiffWriter(path, byteorder="<") as writer:
        for number, plane in enumerate(stack):
            tag = (34412, 1, info.itemsize, info.tobytes(), True)
            tags = [tag] if number == 0 else []
            writer.write(plane, metadata=None, extratags=tags, contiguous=False)
            writer.write(plane[::4, ::4], metadata=None, subfiletype=1, contiguous=False)


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
