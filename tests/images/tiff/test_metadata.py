"""What a TIFF says beside its pixels: axes, units, tags, EXIF, missing values."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample

from normeq.errors import InputError
from normeq.images import open_image


def test_imagej_hyperstack(tmp_path: Path) -> None:
    image = sample((2, 3, 2, 24, 20), "uint16")
    about = {
        "axes": "TZCYX",
        "unit": "um",
        "spacing": 0.4,
        "finterval": 2.0,
        "Info": "microscope 7",
    }
    about["Labels"] = [f"plane {i}" for i in range(12)]
    tifffile.imwrite(tmp_path / "in.tif", image, imagej=True, resolution=(5.5, 5.5), metadata=about)
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with (
        tifffile.TiffFile(tmp_path / "in.tif") as before,
        tifffile.TiffFile(tmp_path / "out.tif") as after,
    ):
        np.testing.assert_array_equal(after.asarray(), inverted(image))
        assert after.series[0].axes == "TZCYX"
        assert after.imagej_metadata == before.imagej_metadata
        for tag in ("XResolution", "YResolution", "ResolutionUnit"):
            assert after.pages.first.tags[tag].value == before.pages.first.tags[tag].value


def test_regions_of_interest_of_imagej_are_kept(tmp_path: Path) -> None:
    # A rectangle, as ImageJ stores it: signature, version, kind, top, left, bottom, right.
    region = b"Iout" + struct.pack(">hBxhhhh", 228, 1, 2, 3, 12, 14) + bytes(48)
    about = {"axes": "ZYX", "ROI": region, "Overlays": [region, region]}
    image = sample((3, 24, 20), "uint16")
    tifffile.imwrite(tmp_path / "in.tif", image, imagej=True, metadata=about)
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        metadata = after.imagej_metadata or {}
        np.testing.assert_array_equal(after.asarray(), inverted(image))
    assert metadata["ROI"] == region
    assert metadata["Overlays"] == [region, region]


def test_ome(tmp_path: Path) -> None:
    image = sample((2, 3, 24, 20), "uint16")
    tifffile.imwrite(
        tmp_path / "in.ome.tif",
        image,
        metadata={
            "axes": "CZYX",
            "PhysicalSizeX": 0.29,
            "PhysicalSizeXUnit": "µm",
            "Channel": {"Name": ["DAPI", "GFP"]},
        },
    )
    copy(tmp_path / "in.ome.tif", tmp_path / "out.ome.tif")
    with (
        tifffile.TiffFile(tmp_path / "in.ome.tif") as before,
        tifffile.TiffFile(tmp_path / "out.ome.tif") as after,
    ):
        np.testing.assert_array_equal(after.asarray(), inverted(image))
        assert after.series[0].axes == "CZYX"
        assert after.is_ome
        assert "DAPI" in str(after.ome_metadata)
        assert "µm" in str(after.ome_metadata)
        ours, theirs = (str(f.ome_metadata).split("<TiffData")[0] for f in (after, before))
        assert ours == theirs


def write_ome_set(folder: Path, image: np.ndarray) -> None:
    """Write each plane of a stack to a file of its own, each with the description of all."""
    depth, height, width = image.shape
    pixels = (
        f'<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="{width}" '
        f'SizeY="{height}" SizeZ="{depth}" SizeC="1" SizeT="1">'
        '<Channel ID="Channel:0" SamplesPerPixel="1"/>{}</Pixels>'
    )
    places = "".join(
        f'<TiffData IFD="0" FirstZ="{z}" PlaneCount="1"><UUID FileName="{z}.ome.tif">'
        f"urn:uuid:{z}</UUID></TiffData>"
        for z in range(depth)
    )
    for z in range(depth):
        xml = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
            f'UUID="urn:uuid:{z}"><Image ID="Image:0">{pixels.format(places)}</Image></OME>'
        )
        tifffile.imwrite(folder / f"{z}.ome.tif", image[z], description=xml, metadata=None)


def test_ome_in_several_files_becomes_one(tmp_path: Path) -> None:
    image = sample((2, 24, 20), "uint16")
    write_ome_set(tmp_path, image)
    copy(tmp_path / "0.ome.tif", tmp_path / "out.ome.tif")
    (tmp_path / "1.ome.tif").unlink()
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(image))
        assert after.series[0].axes == "ZYX"


def test_a_part_of_an_image_in_several_files_names_the_first(tmp_path: Path) -> None:
    write_ome_set(tmp_path, sample((2, 24, 20), "uint16"))
    with pytest.raises(
        InputError, match=r"1\.ome\.tif is part of the image that starts in 0\.ome\.tif"
    ):
        open_image(tmp_path / "1.ome.tif")


def ome_file(path: Path, image: np.ndarray, pixels: str, planes: str, rest: str = "") -> None:
    height, width = image.shape
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:a">'
        f'<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" '
        f'SizeX="{width}" SizeY="{height}" {pixels}><Channel ID="Channel:0"/>{planes}</Pixels>'
        f"</Image>{rest}</OME>"
    )
    tifffile.imwrite(path, image, description=xml, metadata=None)


@pytest.mark.parametrize("place", ["{folder}/secret.tif", "../secret.tif", "a/../../secret.tif"])
def test_only_files_beside_an_ome_tiff_are_read(tmp_path: Path, place: str) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    image = sample((16, 16), "uint8")
    tifffile.imwrite(tmp_path / "secret.tif", image)
    planes = (
        '<TiffData IFD="0" FirstZ="0" PlaneCount="1"/><TiffData IFD="0" FirstZ="1" PlaneCount="1">'
        f'<UUID FileName="{place.format(folder=tmp_path)}">urn:uuid:b</UUID></TiffData>'
    )
    path = tmp_path / "data" / "in.ome.tif"
    ome_file(path, image, 'SizeZ="2" SizeC="1" SizeT="1"', planes)
    with pytest.raises(InputError, match="only files beside it are read"):
        open_image(path)


@pytest.mark.parametrize(
    ("sizes", "rest"),
    [
        ('SizeZ="100000000" SizeC="1" SizeT="1"', ""),
        ('SizeZ="100000" SizeC="1000" SizeT="10"', ""),
        (
            'SizeZ="1" SizeC="1" SizeT="1"',
            '<StructuredAnnotations><XMLAnnotation ID="A" Namespace="modulo"><Value><Modulo>'
            '<ModuloAlongT Type="lifetime" Start="0" End="1e12" Step="1e-3"/></Modulo></Value>'
            "</XMLAnnotation></StructuredAnnotations>",
        ),
    ],
)
def test_more_planes_than_can_be_are_refused(tmp_path: Path, sizes: str, rest: str) -> None:
    path = tmp_path / "in.ome.tif"
    ome_file(path, sample((16, 16), "uint8"), sizes, "<TiffData/>", rest)
    with pytest.raises(InputError, match="planes"):
        open_image(path)


def test_an_image_in_many_files_keeps_few_of_them_open(tmp_path: Path) -> None:
    image = sample((80, 8, 9), "uint16")
    write_ome_set(tmp_path, image)
    with open_image(tmp_path / "0.ome.tif") as source:
        read = [source.read(frame, 0, 8)[..., 0] for frame in range(80)]
        held = list(Path("/proc/self/fd").glob("*")) if Path("/proc/self/fd").exists() else []
        opened = [fd for fd in held if fd.exists() and fd.resolve().parent == tmp_path.resolve()]
    np.testing.assert_array_equal(read, image)
    assert len(opened) <= 65


def test_tags_of_every_page_survive(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
        for page in range(3):
            writer.write(
                sample((16, 16), "uint8", page),
                description=f"page {page}",
                resolution=(1200 + page, 1200),
                resolutionunit="CENTIMETER",
                datetime="2020:01:02 03:04:05",
                metadata=None,
                software="camera",
                extratags=[
                    (65000, "d", 2, (1.5, float(page)), True),
                    (42113, "s", 0, "-9999", True),
                    (286, "2I", 1, (7 + page, 3), True),
                    (65001, "2i", 2, (-1, 3, 5, -7), True),
                ],
            )
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        for number, page in enumerate(after.pages):
            tags = page.aspage().tags
            assert tags["ImageDescription"].value == f"page {number}"
            assert tags["XResolution"].value == (1200 + number, 1)
            assert tags["ResolutionUnit"].value == 3
            assert tags["DateTime"].value == "2020:01:02 03:04:05"
            assert tags["Software"].value == "camera"
            assert tags[65000].value == (1.5, float(number))
            assert tags[42113].value == "-9999"
            assert (tags["XPosition"].value, tags["XPosition"].count) == ((7 + number, 3), 1)
            assert (tags[65001].value, tags[65001].count) == ((-1, 3, 5, -7), 2)


def test_one_directory_for_many_pages(tmp_path: Path) -> None:
    image = sample((2, 3, 16, 16), "uint16")
    tifffile.imwrite(
        tmp_path / "in.tif",
        image,
        truncate=True,
        photometric="minisblack",
        metadata={"axes": "TCYX"},
    )
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        assert after.series[0].axes == "TCYX"
        np.testing.assert_array_equal(after.asarray(), inverted(image))


@pytest.mark.parametrize(
    ("dtype", "text", "blank"),
    [
        ("float32", "-9999", -9999.0),
        ("float32", "-3.4028234663852886e+38 ", float(np.finfo(np.float32).min)),
        ("int16", "-32768", -32768),
        ("uint8", "-9999", None),
        ("uint8", "2.5", None),
        ("float32", "nan", None),
        ("float32", "none", None),
    ],
)
def test_values_that_mean_none(tmp_path: Path, dtype: str, text: str, blank: float | None) -> None:
    tag = (42113, "s", 0, text, True)
    tifffile.imwrite(tmp_path / "in.tif", sample((16, 16), dtype), extratags=[tag])
    with open_image(tmp_path / "in.tif") as source:
        assert source.blank == blank


def test_vendors_descriptions_are_kept(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
        for page in range(2):
            text = f"frameNumbers = {page}"
            writer.write(
                sample((16, 16), "int16", page),
                description=text,
                metadata=None,
                software="SI.LINE_FORMAT_VERSION = 1",
            )
    with tifffile.TiffFile(tmp_path / "in.tif") as before:
        assert before.series[0].kind == "scanimage"
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif") as after:
        texts = [page.aspage().description for page in after.pages]
    assert "frameNumbers = 0" in texts[0]
    assert texts[1] == "frameNumbers = 1"


@pytest.mark.parametrize(
    ("dtype", "options"),
    [("u1", {}), ("u1", {"big_tiff": True}), (">u2", {})],
    ids=["classic", "bigtiff", "big-endian"],
)
def test_exif_and_gps_survive(tmp_path: Path, dtype: str, options: dict[str, Any]) -> None:
    from PIL import Image
    from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

    about = ImageFileDirectory_v2()
    about[34665] = {33434: IFDRational(1, 250), 36867: "2020:01:02 03:04:05", 34855: 400}
    about[34853] = {1: "N", 2: (IFDRational(48), IFDRational(8), IFDRational(61, 2))}
    image = Image.fromarray(sample((16, 16), dtype))
    image.save(tmp_path / "in.tif", tiffinfo=about, **options)
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with (
        tifffile.TiffFile(tmp_path / "in.tif") as before,
        tifffile.TiffFile(tmp_path / "out.tif") as after,
    ):
        ours, theirs = after.pages.first.tags, before.pages.first.tags
        assert theirs["ExifTag"].value["ExposureTime"] == (1, 250)
        for name in ("ExifTag", "GPSTag"):
            assert ours[name].value == theirs[name].value
        assert after.is_bigtiff == before.is_bigtiff
    with Image.open(tmp_path / "out.tif") as picture:  # by a reader that is not the writer
        assert picture.getexif().get_ifd(34853)[1] == "N"
        np.testing.assert_array_equal(picture, inverted(sample((16, 16), dtype)))


def test_a_description_that_makes_no_sense_does_not_cost_the_pixels(tmp_path: Path) -> None:
    image = sample((3, 16, 16), "uint16")
    tifffile.imwrite(tmp_path / "in.tif", image, imagej=True, metadata={"axes": "ZYX"})
    data = (tmp_path / "in.tif").read_bytes()
    (tmp_path / "in.tif").write_bytes(data.replace(b"slices=3", b"slices=x"))
    copy(tmp_path / "in.tif", tmp_path / "out.tif")
    with tifffile.TiffFile(tmp_path / "out.tif", is_imagej=False) as after:
        np.testing.assert_array_equal(after.asarray(), inverted(image))


def test_an_encoding_that_does_not_exist_does_not_cost_the_pixels(tmp_path: Path) -> None:
    path, image = tmp_path / "in.ome.tif", sample((3, 16, 16), "uint16")
    tifffile.imwrite(path, image, metadata={"axes": "ZYX"}, ome=True, photometric="minisblack")
    path.write_bytes(path.read_bytes().replace(b'encoding="UTF-8"', b'encoding="UTF-."'))
    copy(path, tmp_path / "out.ome.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.ome.tif"), inverted(image))
