from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample
from PIL import Image

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image


@pytest.mark.parametrize("shape", [(16, 24), (16, 24, 3)])
def test_jpeg_becomes_png(tmp_path: Path, shape: tuple[int, ...]) -> None:
    picture = Image.fromarray(sample(shape, "uint8"))
    exif = Image.Exif()
    exif[0x010F] = "maker"
    picture.save(tmp_path / "in.jpg", dpi=(72, 72), exif=exif, icc_profile=b"profile")
    copy(tmp_path / "in.jpg", tmp_path / "out.png")
    with Image.open(tmp_path / "in.jpg") as before, Image.open(tmp_path / "out.png") as after:
        assert after.format == "PNG"
        np.testing.assert_array_equal(np.asarray(after), inverted(np.asarray(before)))
        assert after.info["icc_profile"] == b"profile"
        assert after.getexif()[0x010F] == "maker"
        assert after.info["dpi"] == pytest.approx((72, 72), rel=1e-3)


def test_four_inks_are_refused(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8)).save(tmp_path / "in.jpg")
    with pytest.raises(InputError, match="convert it"):
        open_image(tmp_path / "in.jpg")


def test_another_format_of_this_name_is_refused(tmp_path: Path) -> None:
    images.write(tmp_path / "a.png", sample((8, 8), "uint8"))
    (tmp_path / "a.jpg").write_bytes((tmp_path / "a.png").read_bytes())
    with pytest.raises(FileError, match="not a JPEG"):
        open_image(tmp_path / "a.jpg")
