from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.image_samples import copy, inverted, sample
from helpers.vendor_files import write_imaris

from normeq import images
from normeq.errors import FileError
from normeq.images import open_image

h5py = pytest.importorskip("h5py", reason="needs the hdf5 extra")


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
