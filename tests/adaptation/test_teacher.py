"""What a network is taught: closer to the truth than its own output, the same in all units."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import normeq
from normeq import classical
from normeq.adaptation.noisy_planes import NoisyPlane
from normeq.adaptation.plane_grid import PlaneGrid
from normeq.adaptation.teacher import Teacher
from normeq.denoising.plane_noise import PlaneNoise
from normeq.images.array import ArraySource

SIGMA = 20.0
TEXTURE = 100 + 60 * np.sign(np.add.outer(np.sin(np.arange(96) / 2), np.cos(np.arange(96) / 2)))
NOISY = TEXTURE + np.random.default_rng(0).normal(0, SIGMA, TEXTURE.shape)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    net = normeq.create("unet", "norm-equiv-residual", blind=True, widths=(4, 4), blocks=1)
    return net.eval().requires_grad_(False)


def plane_of(image, sigma=SIGMA):
    return NoisyPlane(ArraySource(image, "YX"), 0, 0, PlaneNoise(), sigma, None, (0,))


def lesson(net, image=NOISY, sigma=SIGMA):
    return Teacher(net, [plane_of(image, sigma)], 0, 1.0).lesson(0)


def errors(found):
    """Return the mean squared errors of the lesson and of the input, in units of the noise."""
    truth = TEXTURE[found.cell.rows, found.cell.columns] / SIGMA - found.tile.origin
    return [np.mean((each - truth) ** 2) for each in (found.target, found.tile.values)]


def test_a_lesson_on_repeated_structures_is_close_to_the_truth(net):
    taught, noisy = errors(lesson(net))
    assert taught < 0.3 * noisy


@pytest.mark.parametrize(
    ("gain", "offset", "tolerance"), [(2.0**-5, 0.0, 0.0), (0.37, 1234.5, 2e-3)]
)
def test_a_lesson_is_the_same_in_other_units(net, gain, offset, tolerance):
    once, again = lesson(net), lesson(net, gain * NOISY + offset, gain * SIGMA)
    assert np.abs(once.target - again.target).max() <= tolerance


def test_what_is_worse_than_the_network_is_not_taught(net, monkeypatch):
    """Noise that is doubled instead of removed has no part in the lesson."""
    good = lesson(net)
    monkeypatch.setattr(classical, "bm3d", lambda image, sigma: 2 * image)
    bad = lesson(net)
    own = run(net, bad.tile.values)
    assert np.abs(bad.target - own).max() < 0.1
    assert np.abs(good.target - own).max() > 1


def run(net, values):
    return net(torch.from_numpy(values.astype(np.float32).copy())[None])[0].numpy()


def test_squares_of_a_grid_are_drawn_once_each():
    grid = PlaneGrid([plane_of(np.zeros((70, 100))), plane_of(np.zeros((40, 64)))], 32)
    assert len(grid) == 6 + 2
    cells = grid.sample(8, np.random.default_rng(0))
    places = [(cell.plane, cell.rows.start, cell.columns.start) for cell in cells]
    assert places == [(0, row, column) for row in (0, 32) for column in (0, 32, 64)] + [
        (1, 0, 0),
        (1, 0, 32),
    ]
