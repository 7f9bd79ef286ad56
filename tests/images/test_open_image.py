"""What is not an image, whatever it is called."""

import os
from pathlib import Path

import pytest
import zarr
from helpers.image_samples import sample

from normeq import denoise_files
from normeq.errors import FileError, InputError
from normeq.images import open_image

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")


@posix
@pytest.mark.parametrize("name", ["a.tif", "a.png", "a.npy", "a.fits"])
def test_pipes_and_devices_are_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match="a device or a pipe"):
        open_image(tmp_path / name)
    (tmp_path / f"zero-{name}").symlink_to("/dev/zero")
    with pytest.raises(FileError, match="a device or a pipe"):
        open_image(tmp_path / f"zero-{name}")


@posix
def test_links_that_go_round_in_a_circle_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.tif").symlink_to("b.tif")
    (tmp_path / "b.tif").symlink_to("a.tif")
    [outcome] = denoise_files(tmp_path / "a.tif", model="median_filter")
    assert "does not exist" in str(outcome.error)
    [outcome] = denoise_files(tmp_path / "a.tif", tmp_path / "b.tif", model="median_filter")
    assert outcome.status == "failed"


def test_text_from_files_does_not_control_the_terminal(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "in.zarr", zarr_format=2)
    group.attrs["multiscales"] = [{"datasets": [{"path": "/\x1b[2J\x07\u202e"}]}]
    group.create_array("0", data=sample((8, 8), "uint8"))
    with pytest.raises(InputError, match="not inside it") as caught:
        open_image(tmp_path / "in.zarr")
    assert str(caught.value).isprintable()


def test_a_folder_that_is_not_a_zarr_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.tif").mkdir()
    for name in ("a.zarr", "a.tif"):
        with pytest.raises(FileError, match="cannot be read as"):
            open_image(tmp_path / name)
