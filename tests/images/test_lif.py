from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample
from helpers.vendor_files import write_lif

from normeq import images
from normeq.errors import FileError, UsageError
from normeq.images import open_image

pytest.importorskip("liffile", reason="needs the lif extra")


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_stack_becomes_an_ome_tiff(tmp_path: Path, dtype: str) -> None:
    stack = sample((3, 20, 24), dtype)
    write_lif(tmp_path / "in.lif", cells=stack)
    np.testing.assert_array_equal(images.read(tmp_path / "in.lif"), stack)
    copy(tmp_path / "in.lif", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(stack))
        assert after.series[0].axes == "ZYX"
        assert 'PhysicalSizeX="0.2' in str(after.ome_metadata)
        assert after.pages.first.dtype == dtype


def test_one_of_several_images_is_named(tmp_path: Path) -> None:
    first, second = sample((2, 20, 24), "uint8"), sample((3, 8, 8), "uint8")
    write_lif(tmp_path / "in.lif", a=first, b=second)
    with pytest.raises(UsageError, match=r"contains 2 images, .*; name one of them"):
        open_image(tmp_path / "in.lif")
    np.testing.assert_array_equal(images.read(f"{tmp_path}/in.lif:b"), second)
    with open_image(tmp_path / "in.lif", part="0") as source:
        assert source.shape == (2, 20, 24)
        source.close()
        np.testing.assert_array_equal(source.read(1, 0, 20)[..., 0], first[1])
    with pytest.raises(UsageError, match="'c' is not one of its images"):
        open_image(tmp_path / "in.lif", part="c")


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    write_lif(tmp_path / "in.lif", a=sample((2, 20, 24), "uint8"))
    content = (tmp_path / "in.lif").read_bytes()
    for length in (0, 10, 200, len(content) - 100):
        (tmp_path / "in.lif").write_bytes(content[:length])
        with pytest.raises(FileError, match="cannot be read as LIF"):
            images.read(tmp_path / "in.lif")
