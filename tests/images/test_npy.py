from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError, UsageError
from normeq.images import open_image


@pytest.mark.parametrize("dtype", ["uint8", "int8", ">u2", "<i4", "uint64", "float16", ">f8"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((9, 8), None),
        ((8, 9), "XY"),
        ((2, 3, 9, 8), None),
        ((9, 8, 3), "YXC"),
        ((9, 3, 8), "YCX"),
        ((4, 8, 2, 9), "TXZY"),
        ((9, 8, 3), "YXS"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_shape_axes_and_order(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], axes: str | None, order: str
) -> None:
    image = np.asarray(sample(shape, dtype), order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "in.npy", image)
    copy(tmp_path / "in.npy", tmp_path / "out.npy", rows=4, axes=axes)
    after = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(after, inverted(image))
    assert after.dtype == image.dtype
    assert after.flags.f_contiguous == image.flags.f_contiguous
    np.testing.assert_array_equal(images.read(tmp_path / "in.npy", axes), image)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((0, 4)), "is empty"),
        (np.zeros((4, 4), bool), "booleans"),
        (np.zeros((32, 40, 3)), "looks like a colour image: name its axes with --axes YXS"),
        (np.zeros((4, 4), complex), "complex"),
        (np.zeros((4, 4), "U3"), "integers or floats"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, array: np.ndarray, sentence: str) -> None:
    np.save(tmp_path / "in.npy", array)
    with pytest.raises(InputError, match=sentence):
        open_image(tmp_path / "in.npy")


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(FileError, match="objects"):
        open_image(tmp_path / "in.npy")


@pytest.mark.parametrize("axes", ["YX", "YXX", "ABC"])
def test_axes_that_do_not_fit_are_refused(tmp_path: Path, axes: str) -> None:
    np.save(tmp_path / "in.npy", np.zeros((3, 4, 5)))
    with pytest.raises(UsageError, match="axes"):
        open_image(tmp_path / "in.npy", axes)


@pytest.mark.parametrize("shape", [(), (5,)])
def test_less_than_a_plane_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "in.npy", np.zeros(shape))
    with pytest.raises(InputError, match="two axes"):
        open_image(tmp_path / "in.npy")
