from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample
from PIL import Image

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image, pictures


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


@pytest.mark.parametrize("extension", ["webp", "bmp"])
@pytest.mark.parametrize("shape", [(16, 24), (16, 24, 3), (16, 24, 4)])
def test_webp_and_bmp_become_png(tmp_path: Path, extension: str, shape: tuple[int, ...]) -> None:
    if extension == "webp" and len(shape) == 2:
        pytest.skip("WebP has no gray images")
    if extension == "bmp" and shape[2:] == (4,):
        pytest.skip("Pillow writes no opacity")
    image = sample(shape, "uint8")
    path = tmp_path / f"in.{extension}"
    options = {"lossless": True, "exact": True} if extension == "webp" else {}
    Image.fromarray(image).save(path, **options)
    np.testing.assert_array_equal(images.read(path), image)
    copy(path, tmp_path / "out.png")
    np.testing.assert_array_equal(images.read(tmp_path / "out.png"), inverted(image))
    with open_image(path) as source:
        assert source.alpha is (shape[2:] == (4,))


def test_an_animation_is_refused(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), (level, 0, 0)) for level in (0, 100)]
    frames[0].save(tmp_path / "in.webp", save_all=True, append_images=frames[1:])
    with pytest.raises(InputError, match="animation"):
        open_image(tmp_path / "in.webp")


@pytest.mark.parametrize("dpi", [(0, 0), (-3, 72), (1e300, 1)])
def test_a_pixel_size_that_makes_no_sense_does_not_cost_the_pixels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpi: tuple[float, float]
) -> None:
    Image.fromarray(sample((8, 8), "uint8")).save(tmp_path / "in.jpg")
    original = pictures.JpegSource.plugin

    def damaged(path: Path) -> Any:
        image = original(path)
        image.info["dpi"] = dpi
        return image

    monkeypatch.setattr(pictures.JpegSource, "plugin", staticmethod(damaged))
    copy(tmp_path / "in.jpg", tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as after:
        assert "dpi" not in after.info


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("shape", [(16, 24), (16, 24, 3)])
def test_jpeg_2000_becomes_png(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    imagecodecs = pytest.importorskip("imagecodecs", reason="needs the codecs extra")
    image = sample(shape, dtype) * (200 if dtype == "uint16" else 1)
    for extension, kind in ((".jp2", "jp2"), (".j2k", "j2k")):
        path = tmp_path / f"in{extension}"
        path.write_bytes(imagecodecs.jpeg2k_encode(image, level=0, codecformat=kind))
        np.testing.assert_array_equal(images.read(path), image)
        copy(path, tmp_path / "out.png")
        np.testing.assert_array_equal(images.read(tmp_path / "out.png"), inverted(image))
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileError, match="cannot be read as JPEG 2000"):
        open_image(path)
