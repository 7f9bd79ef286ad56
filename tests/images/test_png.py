import struct
import types
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample
from PIL import Image, PngImagePlugin

from normeq import images
from normeq.errors import FileError, InputError, UsageError
from normeq.images import open_image
from normeq.images.png import chunk


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("samples", [1, 2, 3, 4])
def test_png_of_every_depth_and_colour(tmp_path: Path, dtype: str, samples: int) -> None:
    image = sample((19, 23) if samples == 1 else (19, 23, samples), dtype)
    image = image * 255 if dtype == "uint16" else image
    images.write(tmp_path / "in.png", image)
    copy(tmp_path / "in.png", tmp_path / "out.png")
    np.testing.assert_array_equal(images.read(tmp_path / "out.png"), inverted(image))
    with open_image(tmp_path / "out.png") as source:
        assert source.dtype == dtype
        assert source.alpha is (samples in (2, 4))
    if dtype == "uint8" or samples == 1:  # a second opinion, where Pillow keeps all bits
        np.testing.assert_array_equal(iio.imread(tmp_path / "out.png"), inverted(image))


def test_png_keeps_pixel_size_texts_and_profile(tmp_path: Path) -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "exposure 20 ms")
    Image.fromarray(sample((9, 9), "uint8")).save(
        tmp_path / "in.png", pnginfo=text, dpi=(300, 300), icc_profile=b"profile"
    )
    copy(tmp_path / "in.png", tmp_path / "out.png")
    with Image.open(tmp_path / "in.png") as before, Image.open(tmp_path / "out.png") as after:
        assert after.info == before.info
        assert after.info["Comment"] == "exposure 20 ms"


def test_png_keeps_units_and_colour_space(tmp_path: Path) -> None:
    images.write(tmp_path / "plain.png", sample((9, 9), "uint16"))
    content = (tmp_path / "plain.png").read_bytes()
    header, rest = content[:33], content[33:]
    added = chunk(b"cICP", bytes([9, 16, 0, 1])) + chunk(b"sCAL", b"\x010.0000003\x000.0000003")
    (tmp_path / "in.png").write_bytes(header + added + rest)
    copy(tmp_path / "in.png", tmp_path / "out.png")
    assert added in (tmp_path / "out.png").read_bytes()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_colour_that_is_transparent_is_refused(tmp_path: Path, mode: str) -> None:
    key = 7 if mode == "L" else (7, 7, 7)
    Image.new(mode, (8, 8)).save(tmp_path / "in.png", transparency=key)
    with pytest.raises(InputError, match="marks one colour as transparent"):
        open_image(tmp_path / "in.png")


@pytest.mark.parametrize("mode", ["P", "1"])
def test_modes_that_are_not_intensities_are_refused(tmp_path: Path, mode: str) -> None:
    Image.new(mode, (8, 8)).save(tmp_path / "in.png")
    with pytest.raises(InputError, match="convert it"):
        open_image(tmp_path / "in.png")


def test_animations_are_refused(tmp_path: Path) -> None:
    frames = [Image.new("L", (8, 8), level) for level in (0, 100)]
    frames[0].save(tmp_path / "in.png", save_all=True, append_images=frames[1:])
    with pytest.raises(InputError, match="animation"):
        open_image(tmp_path / "in.png")


def test_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 0, 0, 0, 0)
    (tmp_path / "in.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")
    )
    with pytest.raises(InputError, match="--max-pixels"):
        open_image(tmp_path / "in.png")


def test_the_limit_of_pillow_neither_holds_nor_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = sample((16, 24), "uint8")
    images.write(tmp_path / "in.png", image)
    Image.fromarray(image).save(tmp_path / "in.jpg")
    seen = []

    class Watched(types.ModuleType):
        def __setattr__(self, name: str, value: object) -> None:
            seen.append(name)
            super().__setattr__(name, value)

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    monkeypatch.setattr(Image, "__class__", Watched)
    np.testing.assert_array_equal(images.read(tmp_path / "in.png"), image)
    assert images.read(tmp_path / "in.jpg").shape == image.shape
    assert "MAX_IMAGE_PIXELS" not in seen


def test_axes_of_pictures_are_what_they_are(tmp_path: Path) -> None:
    images.write(tmp_path / "in.png", sample((16, 24, 3), "uint8"))
    with pytest.raises(UsageError, match="do not fit"):
        open_image(tmp_path / "in.png", "YXC")


def test_a_file_that_is_not_a_png_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.png").write_bytes(b"hello")
    with pytest.raises(FileError, match="does not start like a PNG"):
        open_image(tmp_path / "b.png")
