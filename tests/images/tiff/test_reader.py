from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError, UsageError
from normeq.images import open_image

DTYPES = ["uint8", "uint16", "int16", "int32", "uint32", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zlib"},
        {"compression": "zlib", "predictor": True},
        {"compression": "lzw", "rowsperstrip": 5},
        {"compression": "zstd", "tile": (16, 32)},
        {"tile": (16, 16)},
        {"rowsperstrip": 4},
        {"bigtiff": True, "byteorder": ">"},
        {"byteorder": ">", "compression": "zlib", "predictor": True},
    ],
    ids=str,
)
def test_pixels_and_layout_survive(tmp_path: Path, dtype: str, options: dict[str, Any]) -> None:
    if options.get("predictor") and dtype == "float16":
        pytest.skip("tifffile has no predictor for float16")
    image = sample((3, 37, 41), dtype)
    tifffile.imwrite(
        tmp_path / "in.tif", image, photometric="minisblack", metadata={"axes": "ZYX"}, **options
    )
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    np.testing.assert_array_equal(images.read(tmp_path / "in.tif"), image)
    with (
        tifffile.TiffFile(tmp_path / "in.tif") as before,
        tifffile.TiffFile(tmp_path / "out.tif") as after,
    ):
        np.testing.assert_array_equal(after.asarray(), inverted(image))
        assert after.series[0].axes == "ZYX"
        assert after.is_bigtiff == before.is_bigtiff
        assert after.byteorder == before.byteorder
        assert len(after.pages) == len(before.pages)
        for name in ("compression", "is_tiled", "rowsperstrip", "tile", "photometric", "dtype"):
            assert getattr(after.pages.first, name) == getattr(before.pages.first, name), name


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize(
    ("shape", "planar", "extra"),
    [((20, 18, 4), "contig", ["unassalpha"]), ((3, 20, 18), "separate", [])],
)
def test_colour(
    tmp_path: Path, shape: tuple[int, ...], planar: str, extra: list[str], compression: str | None
) -> None:
    image = sample(shape, "uint8")
    tifffile.imwrite(
        tmp_path / "in.tif",
        image,
        photometric="rgb",
        planarconfig=planar,
        extrasamples=extra,
        compression=compression,
    )
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with open_image(tmp_path / "in.tif") as source:
        assert source.alpha is bool(extra)
        assert source.planes == 3
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(image))
        assert after.pages.first.extrasamples == ((2,) if extra else ())
        assert after.pages.first.photometric == 2


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize(
    ("shape", "planar", "photometric"),
    [
        ((24, 20, 5), "contig", "minisblack"),
        ((5, 24, 20), "separate", "minisblack"),
        ((24, 20, 4), "contig", "rgb"),
    ],
)
def test_samples_that_say_nothing_of_themselves(
    tmp_path: Path, shape: tuple[int, ...], planar: str, photometric: str, compression: str | None
) -> None:
    image = sample(shape, "uint8")
    options: dict[str, Any] = {"planarconfig": planar, "compression": compression}
    tifffile.imwrite(tmp_path / "in.tif", image, photometric=photometric, metadata=None, **options)
    with tifffile.TiffFile(tmp_path / "in.tif", mode="r+") as before:
        before.pages.first.tags["ExtraSamples"].overwrite((), erase=True)
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        assert len(after.pages) == 1
        np.testing.assert_array_equal(after.asarray(), inverted(image))


def test_pixels_that_are_no_intensities_are_refused(tmp_path: Path) -> None:
    classes = np.random.default_rng(0).integers(0, 2**16, (3, 256)).astype(np.uint16)
    indices = sample((16, 16), "uint8")
    tifffile.imwrite(tmp_path / "map.tif", indices, photometric="palette", colormap=classes)
    colours = sample((16, 16, 3), "uint8")
    tifffile.imwrite(tmp_path / "lab.tif", colours, photometric="cielab")
    tifffile.imwrite(tmp_path / "ycbcr.tif", colours, photometric="ycbcr")
    for name, kind in {"map": "PALETTE", "lab": "CIELAB", "ycbcr": "YCBCR"}.items():
        with pytest.raises(InputError, match=f"{name}.tif stores its pixels as {kind}"):
            open_image(tmp_path / f"{name}.tif")


def test_palette_and_lookup_table(tmp_path: Path) -> None:
    green = np.zeros((3, 256), np.uint16)
    green[1] = np.arange(256) * 257
    tifffile.imwrite(
        tmp_path / "in.tif", sample((16, 16), "uint8"), photometric="palette", colormap=green
    )
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        np.testing.assert_array_equal(after.pages.first.colormap, green)


def test_lossy_compression_becomes_zlib(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "in.tif", sample((32, 32, 3), "uint8"), photometric="rgb", compression="jpeg"
    )
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        assert after.pages.first.compression == 8
        np.testing.assert_array_equal(
            after.asarray(), inverted(tifffile.imread(tmp_path / "in.tif"))
        )


def test_a_codec_that_is_missing_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tifffile.imwrite(tmp_path / "in.tif", sample((32, 32), "uint8"), compression="lzw")
    monkeypatch.setattr(tifffile.TIFF, "DECOMPRESSORS", {8: None})
    with pytest.raises(InputError, match=r"LZW.*normeq\[codecs\]"):
        open_image(tmp_path / "in.tif")


def test_several_images_are_refused(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
        writer.write(sample((16, 16), "uint8"), metadata=None)
        writer.write(sample((8, 9), "uint16"), metadata=None)
    with pytest.raises(InputError, match="2 images"):
        open_image(tmp_path / "in.tif")


def test_booleans_are_refused(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "in.tif", np.zeros((16, 16), bool))
    with pytest.raises(InputError, match="booleans"):
        open_image(tmp_path / "in.tif")


def test_truncation_is_seen_before_any_pixel_is_read(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "in.tif", sample((64, 64), "uint16"))
    data = (tmp_path / "in.tif").read_bytes()
    (tmp_path / "in.tif").write_bytes(data[:-100])
    with pytest.raises(FileError, match="truncated"):
        open_image(tmp_path / "in.tif")


def test_leading_axes_can_be_renamed(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "in.tif", sample((3, 16, 16), "uint8"), photometric="minisblack")
    with open_image(tmp_path / "in.tif", "tyx") as source:
        assert source.axes == "TYX"
    with pytest.raises(UsageError, match="do not fit"):
        open_image(tmp_path / "in.tif", "YXC")


@pytest.mark.parametrize("tag", [256, 257])
@pytest.mark.parametrize("bigtiff", [False, True])
def test_sides_of_zero_are_a_sentence(tmp_path: Path, tag: int, bigtiff: bool) -> None:
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, sample((16, 16), "uint8"), bigtiff=bigtiff)
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages.first.tags[tag].overwrite(0)
    with pytest.raises(FileError, match=r"width|height"):
        open_image(path)


def test_a_directory_beyond_the_end_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, sample((2, 16, 16), "uint8"), bigtiff=True, photometric="minisblack")
    with tifffile.TiffFile(path) as file:
        place = file.pages[1].offset
    data = bytearray(path.read_bytes())
    data[place : place + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(FileError, match="one of its directories is cut off"):
        open_image(path)


@pytest.mark.parametrize("value", [(0, 0), (0, 1), (1, 0), (2**32 - 1, 0)])
def test_a_wrong_resolution_does_not_cost_the_pixels(
    tmp_path: Path, value: tuple[int, int]
) -> None:
    path, image = tmp_path / "in.tif", sample((16, 16), "uint8")
    tifffile.imwrite(path, image, resolution=(3, 3))
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages.first.tags[282].overwrite(value)
    copy(path, tmp_path / "out.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.tif"), inverted(image))


def test_a_photometric_without_a_name_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, sample((16, 16), "uint8"))
    with tifffile.TiffFile(path, mode="r+") as file:
        file.pages.first.tags[262].overwrite(99)
    with pytest.raises(InputError, match="stores its pixels as 99"):
        open_image(path)


@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"imagej": True}])
def test_many_small_pages_are_not_parsed_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    stack = sample((300, 4, 4), "uint16")
    tifffile.imwrite(tmp_path / "in.tif", stack, photometric="minisblack", **options)
    parsed = []
    original = tifffile.TiffPage.__init__

    def counting(page: Any, *arguments: Any, **more: Any) -> None:
        parsed.append(page)
        original(page, *arguments, **more)

    monkeypatch.setattr(tifffile.TiffPage, "__init__", counting)
    with open_image(tmp_path / "in.tif") as source:
        assert source.shape == (300, 4, 4)
        np.testing.assert_array_equal(source.read(299, 0, 4)[..., 0], stack[299])
    assert len(parsed) < 10


def test_a_later_page_with_a_broken_directory_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "in.ome.tif"
    tifffile.imwrite(path, sample((2, 16, 16), "uint16"), metadata={"axes": "ZYX"}, ome=True)
    with tifffile.TiffFile(path) as file:
        place = file.pages[1].aspage().tags["BitsPerSample"].offset
    content = bytearray(path.read_bytes())
    content[place + 4 : place + 8] = bytes(4)  # no value at all
    path.write_bytes(content)
    with pytest.raises(FileError, match="cannot be read as TIFF"):
        copy(path, tmp_path / "out.ome.tif")
