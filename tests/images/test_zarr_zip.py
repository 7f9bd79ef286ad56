import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image, zarr_zip


def packed(folder: Path, target: Path, prefix: str = "") -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, prefix + file.relative_to(folder).as_posix())


@pytest.mark.parametrize("prefix", ["", "image.zarr/"])
def test_pixels_and_attributes_survive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    image = sample((3, 19, 17), "uint16")
    zarr.create_array(tmp_path / "a.zarr", data=image, attributes={"exposure": 20})
    packed(tmp_path / "a.zarr", tmp_path / "in.zarr.zip", prefix)
    np.testing.assert_array_equal(images.read(tmp_path / "in.zarr.zip"), image)
    copy(tmp_path / "in.zarr.zip", tmp_path / "out.zarr.zip")
    with zarr.storage.ZipStore(tmp_path / "out.zarr.zip") as store:
        after = zarr.open_array(store, mode="r")
        np.testing.assert_array_equal(after[:], inverted(image))
        assert dict(after.attrs) == {"exposure": 20}
    assert os.listdir(temporary) == []


def test_names_that_lead_out_stay_inside(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "in.zarr.zip", "w") as archive:
        archive.writestr("../../../../../../victim", "hello")
        archive.writestr("/victim", "hello")
    with pytest.raises(FileError, match="cannot be read as"):
        open_image(tmp_path / "in.zarr.zip")
    assert not Path("/victim").exists()


def test_what_there_is_no_room_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr.create_array(tmp_path / "a.zarr", data=sample((8, 8), "uint8"))
    packed(tmp_path / "a.zarr", tmp_path / "in.zarr.zip")
    monkeypatch.setattr(zarr_zip, "_SHARE", 0.0)
    with pytest.raises(InputError, match="more than the temporary folder has room for"):
        open_image(tmp_path / "in.zarr.zip")


def test_what_is_not_a_zip_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "in.zarr.zip").write_bytes(b"hello")
    with pytest.raises(FileError, match="cannot be read as"):
        open_image(tmp_path / "in.zarr.zip")
