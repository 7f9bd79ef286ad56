import logging
from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

OpenEXR = pytest.importorskip("OpenEXR", reason="needs the exr extra")

HEADER = {
    "compression": OpenEXR.ZIP_COMPRESSION,
    "type": OpenEXR.scanlineimage,
    "owner": "camera 7",
}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_colours_are_replaced_and_the_rest_is_kept(
    tmp_path: Path, dtype: str, caplog: pytest.LogCaptureFixture
) -> None:
    planes = sample((3, 13, 17), dtype) / np.dtype(dtype).type(3)
    depth = sample((13, 17), "float32")
    channels = dict(zip("RGB", planes, strict=True)) | {"Z": depth}
    OpenEXR.File(dict(HEADER), channels).write(str(tmp_path / "in.exr"))
    np.testing.assert_array_equal(images.read(tmp_path / "in.exr"), planes.astype(np.float32))
    with caplog.at_level(logging.WARNING):
        copy(tmp_path / "in.exr", tmp_path / "out.exr")
    assert "channels that are not denoised: Z" in caplog.text
    after = OpenEXR.File(str(tmp_path / "out.exr"), separate_channels=True)
    for name, plane in zip("RGB", planes, strict=True):
        np.testing.assert_array_equal(after.channels()[name].pixels, -plane)
        assert after.channels()[name].pixels.dtype == dtype
    np.testing.assert_array_equal(after.channels()["Z"].pixels, depth)
    assert after.header()["owner"] == "camera 7"
    assert after.header()["compression"] == OpenEXR.ZIP_COMPRESSION


def test_what_is_not_an_image_is_refused(tmp_path: Path) -> None:
    OpenEXR.File(dict(HEADER), {"Z": sample((8, 8), "float32")}).write(str(tmp_path / "in.exr"))
    with pytest.raises(InputError, match="none of the channels R, G, B, Y"):
        open_image(tmp_path / "in.exr")
    OpenEXR.File(dict(HEADER), {"Y": sample((8, 8), "uint32")}).write(str(tmp_path / "in.exr"))
    with pytest.raises(InputError, match="stores integers"):
        images.read(tmp_path / "in.exr")


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    OpenEXR.File(dict(HEADER), {"Y": sample((32, 32), "float32")}).write(str(tmp_path / "in.exr"))
    content = (tmp_path / "in.exr").read_bytes()
    for length in (0, 100, len(content) // 2):
        (tmp_path / "in.exr").write_bytes(content[:length])
        with pytest.raises(FileError, match="cannot be read as OpenEXR"):
            images.read(tmp_path / "in.exr")
