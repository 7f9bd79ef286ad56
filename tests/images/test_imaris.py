from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError
from normeq.images import open_image

h5py = pytest.importorskip("h5py", reason="needs the hdf5 extra")


def letters(text: object) -> np.ndarray:
    return np.array(list(str(text)), "S1")


def write_imaris(path: Path, image: np.ndarray) -> None:
    """Write TCZYX as Imaris does: padded to whole chunks, with a pyramid."""
    with h5py.File(path, "w") as file:
        about = file.create_group("DataSetInfo/Image").attrs
        sides = zip(image.shape[:1:-1], (0.2, 0.2, 1.0), strict=True)
        for number, (side, size) in enumerate(sides):
            about[f"ExtMin{number}"], about[f"ExtMax{number}"] = letters(0), letters(side * size)
        for c in range(image.shape[1]):
            file.create_group(f"DataSetInfo/Channel {c}").attrs["Name"] = letters(f"dye {c}")
        for level in (0, 1):
            for t, c in np.ndindex(*image.shape[:2]):
                name = f"DataSet/ResolutionLevel {level}/TimePoint {t}/Channel {c}"
                group = file.create_group(name)
                pixels = image[t, c, :, :: level + 1, :: level + 1]
                for axis, length in zip("ZYX", pixels.shape, strict=True):
                    group.attrs[f"ImageSize{axis}"] = letters(length)
                padded = np.pad(pixels, [(0, -length % 8) for length in pixels.shape])
                group.create_dataset("Data", data=padded, chunks=(8, 8, 8), compression="gzip")


def test_full_resolution_becomes_an_ome_tiff(tmp_path: Path) -> None:
    image = sample((2, 2, 3, 20, 25), "uint16")
    write_imaris(tmp_path / "in.ims", image)
    with open_image(tmp_path / "in.ims") as source:
        assert (source.axes, source.shape) == ("TCZYX", image.shape)
    np.testing.assert_array_equal(images.read(tmp_path / "in.ims"), image)
    copy(tmp_path / "in.ims", tmp_path / "out.ome.tif")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        np.testing.assert_array_equal(after.asarray(), inverted(image))
        assert after.series[0].axes == "TCZYX"
        assert "dye 1" in str(after.ome_metadata)
        assert 'PhysicalSizeX="0.2"' in str(after.ome_metadata)


def test_plain_hdf5_of_this_name_is_a_sentence(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "in.ims", "w") as file:
        file["data"] = np.zeros((8, 8))
    with pytest.raises(FileError, match="no TimePoint"):
        open_image(tmp_path / "in.ims")
