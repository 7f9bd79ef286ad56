from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError, UsageError
from normeq.images import open_image


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_array_is_replaced_and_the_others_are_kept(
    tmp_path: Path, save: Callable[..., None], order: str
) -> None:
    image = np.asarray(sample((3, 9, 8), ">u2"), order=order)  # type: ignore[call-overload]
    save(tmp_path / "in.npz", stack=image, times=np.arange(3.0))
    np.testing.assert_array_equal(images.read(tmp_path / "in.npz"), image)
    copy(tmp_path / "in.npz", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as after:
        np.testing.assert_array_equal(after["stack"], inverted(image))
        assert after["stack"].dtype == image.dtype
        np.testing.assert_array_equal(after["times"], np.arange(3.0))


def test_one_of_several_arrays_is_named(tmp_path: Path) -> None:
    first, second = sample((9, 8), "uint8", 1), sample((9, 8), "uint8", 2)
    np.savez(tmp_path / "in.npz", a=first, b=second)
    with pytest.raises(UsageError, match=r"contains 2 arrays, a, b; name one of them"):
        open_image(tmp_path / "in.npz")
    np.testing.assert_array_equal(images.read(f"{tmp_path}/in.npz:b"), second)
    with pytest.raises(UsageError, match="'c' is not one of its arrays"):
        open_image(tmp_path / "in.npz", part="c")


def test_objects_are_never_unpickled_and_damage_is_a_sentence(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", a=np.array([[{}]]), allow_pickle=True)
    with pytest.raises(InputError, match="integers or floats"):
        open_image(tmp_path / "in.npz")
    np.savez(tmp_path / "in.npz", a=np.zeros(4))
    with pytest.raises(InputError, match="no array of two or more axes"):
        open_image(tmp_path / "in.npz")
    (tmp_path / "in.npz").write_bytes(b"hello")
    with pytest.raises(FileError, match="cannot be read as NPZ"):
        open_image(tmp_path / "in.npz")
