"""CZI and ND2, for which no library writes files: their readers are played by stand-ins.

What is tested is how normeq uses them: axes, tiles of a mosaic, channels, reading after closing.
"""

from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

czifile = pytest.importorskip("czifile", reason="needs the czi extra")
nd2 = pytest.importorskip("nd2", reason="needs the nd2 extra")


class StandInCzi:
    """A mosaic of tiles of 8 x 8, of axes CZYX0, whose first pixel is not at the origin."""

    image = sample((2, 3, 16, 24, 1), "uint16")
    axes, start = "CZYX0", (0, 5, -8, 100, 0)

    def __init__(self, path: str, multifile: bool) -> None:
        assert not multifile
        self.shape, self.dtype = self.image.shape, self.image.dtype
        self._fh = SimpleNamespace(closed=False)

    @property
    def filtered_subblock_directory(self) -> list[Any]:
        return [
            self._entry(c, z, y, x)
            for c, z in np.ndindex(2, 3)
            for y in range(0, 16, 8)
            for x in range(0, 24, 8)
        ]

    def _entry(self, c: int, z: int, y: int, x: int) -> Any:
        tile = self.image[c : c + 1, z : z + 1, y : y + 8, x : x + 8]
        block = SimpleNamespace(data=lambda resize: tile)
        start = tuple(a + b for a, b in zip((c, z, y, x, 0), self.start, strict=True))
        return SimpleNamespace(start=start, data_segment=lambda: block)

    def close(self) -> None:
        self._fh.closed = True


def test_the_tiles_of_a_czi_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(czifile, "CziFile", StandInCzi)
    (tmp_path / "in.czi").touch()
    stack = StandInCzi.image[..., 0]
    np.testing.assert_array_equal(images.read(tmp_path / "in.czi"), stack)
    copy(tmp_path / "in.czi", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(stack))
        assert after.series[0].axes == "CZYX"
    source = open_image(tmp_path / "in.czi")
    source.close()
    np.testing.assert_array_equal(source.read(4, 0, 16)[..., 0], stack[1, 1])


def test_more_axes_than_ome_has_are_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(StandInCzi):
        image = np.zeros((2, 2, 2, 2, 2, 8, 8, 1), np.uint8)
        axes, start = "VHTCZYX0", (0,) * 8

    monkeypatch.setattr(czifile, "CziFile", Odd)
    (tmp_path / "in.czi").touch()
    with pytest.raises(InputError, match="more than OME-TIFF"):
        open_image(tmp_path / "in.czi")


class StandInNd2:
    """Times and channels, the channels of a frame together."""

    image = sample((3, 2, 16, 20), "uint16")

    def __init__(self, path: Path) -> None:
        self.sizes = dict(zip("TCYX", self.image.shape, strict=True))
        self.dtype = self.image.dtype
        names = [SimpleNamespace(channel=SimpleNamespace(name=name)) for name in ("DAPI", "GFP")]
        self.metadata = SimpleNamespace(channels=names)
        self.closed = False

    def voxel_size(self) -> Any:
        return namedtuple("Voxel", "x y z")(0.3, 0.3, 0.0)

    def read_frame(self, index: int) -> np.ndarray:
        assert not self.closed
        return self.image[index]

    def open(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_the_channels_of_an_nd2_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nd2, "ND2File", StandInNd2)
    (tmp_path / "in.nd2").touch()
    np.testing.assert_array_equal(images.read(tmp_path / "in.nd2"), StandInNd2.image)
    copy(tmp_path / "in.nd2", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(StandInNd2.image))
        assert after.series[0].axes == "TCYX"
        assert "DAPI" in str(after.ome_metadata)
        assert 'PhysicalSizeX="0.3"' in str(after.ome_metadata)


@pytest.mark.parametrize("name", ["in.czi", "in.nd2"])
def test_other_files_of_this_name_are_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"hello, world" * 100)
    with pytest.raises(FileError, match="cannot be read as"):
        open_image(tmp_path / name)
