from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample
from helpers.vendor_files import write_czi

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

czifile = pytest.importorskip("czifile", reason="needs the czi extra")

STACK = sample((2, 3, 20, 24), "uint16")


@pytest.mark.parametrize("compression", [0, 2, 5, 6])
@pytest.mark.parametrize("tile", [8, 32])
def test_the_tiles_of_a_mosaic_are_put_together(
    tmp_path: Path, compression: int, tile: int
) -> None:
    write_czi(tmp_path / "in.czi", STACK, tile, compression)
    np.testing.assert_array_equal(images.read(tmp_path / "in.czi"), STACK)
    source = open_image(tmp_path / "in.czi")
    source.close()
    np.testing.assert_array_equal(source.read(4, 3, 20)[..., 0], STACK[1, 1, 3:])
    source.close()


def test_a_file_of_zeiss_becomes_an_ome_tiff(tmp_path: Path) -> None:
    path = Path(__file__).parent / "data" / "zeiss.czi"  # written by libCZI
    stack = sample((2, 3, 16, 24), "uint16")
    np.testing.assert_array_equal(images.read(path).squeeze(), stack)
    copy(path, tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(stack))
        assert after.series[0].axes == "CZYX"
        for text in ('PhysicalSizeX="0.2"', 'PhysicalSizeZ="1.0"', "DAPI", "GFP"):
            assert text in str(after.ome_metadata)


def test_more_axes_than_ome_has_are_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: str, multifile: bool) -> Any:
        shape = (2, 2, 2, 2, 2, 8, 8, 1)
        odd = {"axes": "VHTCZYX0", "shape": shape, "dtype": np.dtype("uint8")}
        return SimpleNamespace(**odd, close=lambda: None, metadata=lambda: None)

    monkeypatch.setattr(czifile, "CziFile", opened)
    (tmp_path / "in.czi").touch()
    with pytest.raises(InputError, match="more than OME-TIFF"):
        open_image(tmp_path / "in.czi")


def test_wrong_metadata_does_not_cost_the_pixels(tmp_path: Path) -> None:
    write_czi(tmp_path / "in.czi", STACK)
    content = (tmp_path / "in.czi").read_bytes()
    (tmp_path / "in.czi").write_bytes(content.replace(b"<Scaling>", b"<Scaling "))
    np.testing.assert_array_equal(images.read(tmp_path / "in.czi"), STACK)


@pytest.mark.parametrize("compression", [0, 6])
def test_damage_is_a_sentence(tmp_path: Path, compression: int) -> None:
    write_czi(tmp_path / "in.czi", STACK, 8, compression)
    content = (tmp_path / "in.czi").read_bytes()
    for length in (0, 40, 600, 2000, len(content) // 2):
        (tmp_path / "in.czi").write_bytes(content[:length])
        with pytest.raises(FileError, match="cannot be read as CZI"):
            images.read(tmp_path / "in.czi")
    (tmp_path / "in.czi").write_bytes(b"hello, world" * 100)
    with pytest.raises(FileError, match="cannot be read as CZI"):
        open_image(tmp_path / "in.czi")
