from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

nibabel = pytest.importorskip("nibabel", reason="needs the nifti extra")


@pytest.mark.parametrize("dtype", ["uint8", "int16", ">i2", "float32", "float64"])
@pytest.mark.parametrize("extension", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
@pytest.mark.parametrize(
    ("shape", "axes"), [((13, 17), "XY"), ((13, 17, 3), "XYZ"), ((13, 17, 3, 2), "XYZT")]
)
def test_pixels_and_header_survive(
    tmp_path: Path,
    dtype: str,
    kind: type,
    shape: tuple[int, ...],
    axes: str,
    extension: str,
) -> None:
    path, target = tmp_path / f"in{extension}", tmp_path / f"out{extension}"
    image = sample(shape, dtype)
    about = kind(image, np.diag([0.8, 0.8, 2.5, 1.0]), dtype=image.dtype)
    about.header.set_xyzt_units("mm", "sec")
    about.header["descrip"] = b"scanner 7"
    nibabel.save(about, path)
    copy(path, target)
    with open_image(path) as source:
        assert source.axes == axes
    np.testing.assert_array_equal(images.read(path), image)
    before, after = nibabel.load(path), nibabel.load(target)
    assert after.header == before.header
    np.testing.assert_array_equal(np.asanyarray(after.dataobj), inverted(image))
    np.testing.assert_array_equal(after.affine, before.affine)


def test_scaled_values_keep_their_units(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(sample((8, 9), "int16"), np.eye(4))
    image.header.set_slope_inter(0.5, -10)
    nibabel.save(image, tmp_path / "in.nii")
    with open_image(tmp_path / "in.nii") as source:
        assert (source.gain, source.offset) == (0.5, -10.0)


def test_colours_and_single_rows_are_refused(tmp_path: Path) -> None:
    rgb = np.zeros((8, 9), np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")]))
    nibabel.save(nibabel.Nifti1Image(rgb, np.eye(4)), tmp_path / "rgb.nii")
    with pytest.raises(InputError, match="integers or floats"):
        open_image(tmp_path / "rgb.nii")
    nibabel.save(nibabel.Nifti1Image(np.zeros(8, np.float32), np.eye(4)), tmp_path / "row.nii")
    with pytest.raises(InputError, match="two or more axes"):
        open_image(tmp_path / "row.nii")


def test_truncation_is_seen_before_any_pixel_is_read(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(sample((32, 32), "float32"), np.eye(4))
    nibabel.save(image, tmp_path / "in.nii")
    content = (tmp_path / "in.nii").read_bytes()
    for length in (10, 352, len(content) - 1):
        (tmp_path / "in.nii").write_bytes(content[:length])
        with pytest.raises(FileError, match="cannot be read as NIfTI"):
            open_image(tmp_path / "in.nii")
