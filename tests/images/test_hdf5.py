import json
from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import denoise_files, images
from normeq.errors import FileError, InputError, UsageError
from normeq.images import open_image

h5py = pytest.importorskip("h5py", reason="needs the hdf5 extra")


@pytest.mark.parametrize("dtype", ["uint8", ">i2", "float16", "float64"])
@pytest.mark.parametrize("options", [{}, {"chunks": (1, 8, 8), "compression": "gzip"}], ids=str)
def test_pixels_and_everything_else_survive(tmp_path: Path, dtype: str, options: dict) -> None:
    image = sample((3, 13, 17), dtype)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        dataset = file.create_dataset("raw/stack", data=image, **options)
        dataset.attrs["exposure"] = 20
        file["times"] = np.arange(3.0)
    copy(tmp_path / "in.h5", tmp_path / "out.h5")
    np.testing.assert_array_equal(images.read(tmp_path / "in.h5"), image)
    with h5py.File(tmp_path / "out.h5") as after:
        np.testing.assert_array_equal(after["raw/stack"], inverted(image))
        assert after["raw/stack"].attrs["exposure"] == 20
        assert after["raw/stack"].compression == options.get("compression")
        np.testing.assert_array_equal(after["times"], np.arange(3.0))


def test_one_of_several_datasets_is_named_in_the_path(tmp_path: Path) -> None:
    first, second = sample((8, 9), "uint8", 1), sample((8, 9), "uint8", 2)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["a/first"], file["second"] = first, second
    with pytest.raises(UsageError, match=r"contains 2 datasets, a/first, second; name one of them"):
        open_image(tmp_path / "in.h5")
    np.testing.assert_array_equal(images.read(f"{tmp_path}/in.h5:/a/first"), first)
    with pytest.raises(UsageError, match="'third' is not one of its datasets"):
        open_image(f"{tmp_path}/in.h5:/third")
    with pytest.raises(UsageError, match="a is a group; its datasets are first"):
        open_image(f"{tmp_path}/in.h5:/a")
    [outcome] = denoise_files(f"{tmp_path}/in.h5:/second", model=lambda plane: plane / 2)
    assert outcome.output == str(tmp_path / "in.denoised.h5")
    with h5py.File(outcome.output) as after:
        np.testing.assert_array_equal(after["a/first"], first)
        np.testing.assert_array_equal(after["second"], np.rint(second / 2))


def test_axes_that_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "in.h5", "w") as file:
        labelled = file.create_dataset("a", data=np.zeros((9, 8, 4)))
        for dimension, label in zip(labelled.dims, ("y", "x", "time"), strict=True):
            dimension.label = label
        tagged = file.create_dataset("b", data=np.zeros((4, 9, 8)))
        tagged.attrs["axistags"] = json.dumps({"axes": [{"key": key} for key in "zyx"]})
    for name, axes in (("a", "YXT"), ("b", "ZYX")):
        with open_image(tmp_path / "in.h5", part=name) as source:
            assert source.axes == axes


def test_pixels_in_other_files_are_not_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["data"] = np.zeros((8, 8))
    (tmp_path / "secret.raw").write_bytes(bytes(64))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["link"] = h5py.ExternalLink("secret.h5", "data")
        file["soft"] = h5py.SoftLink("/link")
        place = [(str(tmp_path / "secret.raw"), 0, 64)]
        file.create_dataset("external", (8, 8), "u1", external=place)
        layout = h5py.VirtualLayout((8, 8), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "data", (8, 8))
        file.create_virtual_dataset("virtual", layout)
    for name in ("link", "soft", "external", "virtual"):
        with pytest.raises(InputError, match=r"is a link|from other files"):
            open_image(tmp_path / "in.h5", part=name)


def test_what_is_not_hdf5_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "in.h5").write_bytes(b"hello")
    with pytest.raises(FileError, match="cannot be read as HDF5"):
        open_image(tmp_path / "in.h5")
