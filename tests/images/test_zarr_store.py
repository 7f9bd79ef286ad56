import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from helpers.image_samples import bands_of, copy, inverted, sample
from numcodecs import Blosc

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16"])
@pytest.mark.parametrize("chunks", [(1, 8, 8), (3, 19, 17)])
def test_pixels_and_attributes_survive(
    tmp_path: Path, version: Any, dtype: str, chunks: tuple[int, ...]
) -> None:
    image = sample((3, 19, 17), dtype)
    array = zarr.create_array(
        tmp_path / "in.zarr",
        data=image,
        chunks=chunks,
        zarr_format=version,
        attributes={"exposure": 20},
    )
    copy(tmp_path / "in.zarr", tmp_path / "out.zarr")
    after = zarr.open_array(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(after[:], inverted(image))
    np.testing.assert_array_equal(images.read(tmp_path / "in.zarr"), image)
    assert after.metadata.zarr_format == version
    assert dict(after.attrs) == {"exposure": 20}
    assert after.compressors == array.compressors
    assert after.chunks[0] == 1


def test_shards_stay_shards(tmp_path: Path) -> None:
    image = sample((2, 32, 32), "uint16")
    zarr.create_array(tmp_path / "in.zarr", data=image, shards=(2, 16, 16), chunks=(1, 8, 8))
    copy(tmp_path / "in.zarr", tmp_path / "out.zarr")
    after = zarr.open_array(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(after[:], inverted(image))
    assert after.shards == (1, 16, 16)
    assert after.chunks == (1, 8, 8)


def test_shards_may_be_larger_than_the_image(tmp_path: Path) -> None:
    image = sample((30, 30), "uint16")
    zarr.create_array(tmp_path / "in.zarr", data=image, shards=(64, 64), chunks=(8, 8))
    copy(tmp_path / "in.zarr", tmp_path / "out.zarr")
    after = zarr.open_array(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(after[:], inverted(image))
    assert (after.shards, after.chunks) == ((64, 64), (8, 8))


def test_colour_without_a_name_is_asked_about(tmp_path: Path) -> None:
    image = sample((20, 24, 3), "uint8")
    zarr.create_array(tmp_path / "in.zarr", data=image)
    with pytest.raises(InputError, match="looks like a colour image"):
        open_image(tmp_path / "in.zarr")
    with open_image(tmp_path / "in.zarr", "YXC") as source:
        assert source.frames == 3


@pytest.mark.parametrize("version", [2, 3])
def test_named_dimensions_say_where_the_planes_are(tmp_path: Path, version: Any) -> None:
    names = ["y", "x", "time"]
    options: dict[str, Any] = (
        {"dimension_names": names} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": names}}
    )
    image = sample((9, 8, 4), "uint8")
    zarr.create_array(tmp_path / "in.zarr", data=image, zarr_format=version, **options)
    with open_image(tmp_path / "in.zarr") as source:
        assert source.axes == "YXT"
        assert source.frames == 4
    np.testing.assert_array_equal(images.read(tmp_path / "in.zarr"), image)


def ome_zarr(path: Path, image: np.ndarray, version: Any) -> None:
    """Write an OME-Zarr of three levels with labels."""
    group = zarr.create_group(path, zarr_format=version)
    names = "tczyx"[-image.ndim :]
    scales = {
        "axes": [{"name": name, "type": "space", "unit": "micrometer"} for name in names],
        "datasets": [{"path": str(level)} for level in range(3)],
    }
    group.attrs["omero"] = {"channels": [{"label": "GFP"}]}
    if version == 3:
        group.attrs["ome"] = {"version": "0.5", "multiscales": [scales]}
    else:
        group.attrs["multiscales"] = [scales | {"version": "0.4"}]
    for level in range(3):
        part = image[..., :: 2**level, :: 2**level]
        group.create_array(str(level), data=part, chunks=(1,) * (image.ndim - 2) + (8, 8))
    group.create_group("labels").create_array("nuclei", data=np.ones((4, 4), np.uint8))
    if version == 2:
        zarr.consolidate_metadata(path, zarr_format=2)


@pytest.mark.parametrize("version", [2, 3])
def test_ome_zarr_rebuilds_its_pyramid_and_keeps_the_rest(tmp_path: Path, version: Any) -> None:
    image = sample((2, 3, 25, 31), "uint16")
    ome_zarr(tmp_path / "in.ome.zarr", image, version)
    copy(tmp_path / "in.ome.zarr", tmp_path / "out.ome.zarr", rows=8)
    before = zarr.open_group(tmp_path / "in.ome.zarr", mode="r")
    after = zarr.open_group(tmp_path / "out.ome.zarr", mode="r")
    assert dict(after.attrs) == dict(before.attrs)
    np.testing.assert_array_equal(after["0"][:], inverted(image))
    np.testing.assert_array_equal(after["labels/nuclei"][:], np.ones((4, 4)))
    for fine, coarse in (("0", "1"), ("1", "2")):
        assert after[coarse].shape == before[coarse].shape
        top = after[fine][0, 0, :2, :2].astype(float).mean()
        assert after[coarse][0, 0, 0, 0] == np.rint(top)
        rows, columns = (2 * (length - 1) for length in after[coarse].shape[2:])
        last = after[fine][1, 2, rows:, columns:].astype(float).mean()
        assert after[coarse][1, 2, -1, -1] == np.rint(last)
    with open_image(tmp_path / "out.ome.zarr") as source:
        assert source.axes == "CZYX"


def test_bands_left_out_keep_what_was_written_before(tmp_path: Path) -> None:
    image = sample((2, 16, 16), "uint8")
    zarr.create_array(tmp_path / "in.zarr", data=image, chunks=(1, 8, 8))
    with open_image(tmp_path / "in.zarr") as source:
        bands = list(bands_of(source, 8))
        source.write(tmp_path / "out.zarr", bands[:2])
        source.write(tmp_path / "out.zarr", bands[2:])
    np.testing.assert_array_equal(images.read(tmp_path / "out.zarr"), image)


def test_a_group_without_an_image_names_what_it_holds(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "in.zarr")
    group.create_array("raw", data=np.zeros((4, 4)))
    with pytest.raises(InputError, match="raw"):
        open_image(tmp_path / "in.zarr")
    with open_image(tmp_path / "in.zarr" / "raw") as source:
        assert source.shape == (4, 4)


def test_stale_consolidated_metadata_is_not_copied(tmp_path: Path) -> None:
    image = sample((2, 2, 16, 16), "uint8")
    ome_zarr(tmp_path / "in.zarr", image, 3)
    about = json.loads((tmp_path / "in.zarr/zarr.json").read_text())
    about["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {}}
    (tmp_path / "in.zarr/zarr.json").write_text(json.dumps(about))
    copy(tmp_path / "in.zarr", tmp_path / "out.zarr", rows=8)
    assert "consolidated_metadata" not in (tmp_path / "out.zarr/zarr.json").read_text()


def test_a_level_that_cannot_be_encoded_is_a_sentence(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "in.zarr", zarr_format=2)
    datasets = [{"path": "0"}, {"path": "1"}]
    group.attrs["multiscales"] = [{"axes": ["y", "x"], "datasets": datasets}]
    group.create_array("0", data=sample((16, 16), "uint16"))
    codec = Blosc(cname="lz4")
    group.create_array("1", data=sample((8, 8), "uint16"), compressors=codec)
    file = tmp_path / "in.zarr" / "1" / ".zarray"
    file.write_text(file.read_text().replace("lz4", "mz4"))
    with pytest.raises(FileError, match="the copy cannot be encoded"):
        copy(tmp_path / "in.zarr", tmp_path / "out.zarr")
