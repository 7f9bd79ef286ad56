from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

mrcfile = pytest.importorskip("mrcfile", reason="needs the mrc extra")


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "float32", "float16"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((13, 17), "YX"), ((3, 13, 17), "ZYX"), ((2, 3, 13, 17), "QZYX")]
)
def test_pixels_and_header_survive(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], axes: str
) -> None:
    image = (sample(shape, "uint8") // 2).astype(dtype)
    with mrcfile.new(tmp_path / "in.mrc", image) as file:
        file.voxel_size = 1.35
        file.add_label("motion-corrected")
        file.set_extended_header(np.arange(512, dtype=np.uint8))
    copy(tmp_path / "in.mrc", tmp_path / "out.mrc")
    np.testing.assert_array_equal(images.read(tmp_path / "in.mrc"), image)
    with open_image(tmp_path / "in.mrc") as source:
        assert (source.axes, source.dtype) == (axes, dtype)
    with mrcfile.open(tmp_path / "in.mrc") as before, mrcfile.open(tmp_path / "out.mrc") as after:
        np.testing.assert_array_equal(after.data, inverted(image))
        assert after.voxel_size == before.voxel_size
        assert after.get_labels() == before.get_labels()
        np.testing.assert_array_equal(after.extended_header, before.extended_header)
        assert after.header.dmax == after.data.max()
        assert after.header.dmin == after.data.min()


def test_complex_values_are_refused(tmp_path: Path) -> None:
    mrcfile.new(tmp_path / "in.mrc", np.ones((8, 9), np.complex64)).close()
    with pytest.raises(InputError, match="complex"):
        open_image(tmp_path / "in.mrc")


@pytest.mark.filterwarnings("ignore")
def test_truncation_is_seen_before_any_pixel_is_read(tmp_path: Path) -> None:
    mrcfile.new(tmp_path / "in.mrc", sample((32, 32), "float32")).close()
    content = (tmp_path / "in.mrc").read_bytes()
    for length in (10, 1024, len(content) - 1):
        (tmp_path / "in.mrc").write_bytes(content[:length])
        with pytest.raises(FileError, match="cannot be read as MRC"):
            open_image(tmp_path / "in.mrc")
