from __future__ import annotations

import numpy as np
import pytest
from helpers.darmstadt_set import BASE, GAIN, write_darmstadt
from scipy.io import loadmat

from normeq.errors import FileError
from normeq.noise import GeneralizedAnscombe
from normeq.reproduce.darmstadt import denoised_boxes, read_darmstadt, write_submission
from normeq.reproduce.raw_table import stabilised


def test_images_boxes_and_noise_are_read(tmp_path):
    mosaics = write_darmstadt(tmp_path)
    read = list(read_darmstadt(tmp_path))
    assert [image.number for image in read] == [1, 2]
    for image, mosaic in zip(read, mosaics, strict=True):
        np.testing.assert_allclose(image.pixels, mosaic, atol=1e-6)
        assert image.boxes[1] == (slice(8, 40), slice(16, 48))
        assert (image.gain, image.base) == (GAIN, BASE)


def test_the_colours_of_the_mosaic_are_denoised_one_by_one(tmp_path):
    write_darmstadt(tmp_path)
    image = next(read_darmstadt(tmp_path))
    seen = []

    def mean(plane, gain, base):
        seen.append((plane.shape, gain, base))
        return np.full_like(plane, plane.mean())

    boxes = denoised_boxes(image, mean)
    assert seen == [((16, 16), GAIN, BASE)] * 8
    np.testing.assert_allclose(boxes[0][:2, :2], [[0.2, 0.5], [0.5, 0.8]], atol=0.01)


def test_a_submission_holds_the_boxes_of_one_image(tmp_path):
    boxes = [np.full((4, 6), 0.5, np.float32), np.zeros((2, 2), np.float32)]
    path = write_submission(tmp_path / "out", 7, boxes)
    stored = loadmat(path)
    assert path.name == "0007.mat"
    assert stored["Idenoised"].shape == (1, 2)
    np.testing.assert_array_equal(stored["Idenoised"][0, 0], boxes[0])
    assert stored["Idenoised"][0, 0].dtype == np.float32
    assert (bool(stored["israw"]), str(stored["eval_version"][0])) == (True, "1.0")


def test_damaged_sets_are_one_sentence(tmp_path):
    with pytest.raises(FileError, match=r"info.mat cannot be read"):
        next(read_darmstadt(tmp_path))
    write_darmstadt(tmp_path)
    (tmp_path / "images_raw" / "0001.mat").write_bytes(b"not HDF5")
    with pytest.raises(FileError, match=r"0001.mat cannot be read"):
        next(read_darmstadt(tmp_path))


def test_stabilised_noise_has_the_level_that_the_network_is_told():
    rng = np.random.default_rng(0)
    ramp = np.add.outer(np.linspace(0.1, 0.5, 300), np.linspace(0.0, 0.4, 300))
    noisy = ramp + rng.normal(0, np.sqrt(GAIN * ramp + BASE))
    told = []

    def spy(plane, sigma):
        assert (plane.min(), plane.max()) == (0, 1)
        difference = plane[:, 1:] - plane[:, :-1]
        told.append((sigma, difference.std() / np.sqrt(2)))
        return plane

    same = stabilised(spy, noisy, GeneralizedAnscombe(GAIN, BASE, BASE**0.5))
    assert told[0][1] == pytest.approx(told[0][0], rel=0.1)
    assert np.abs(same - noisy).mean() < 0.01
