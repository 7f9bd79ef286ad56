"""The shipped networks remove as much noise as they are told, and do not mind a small error."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from skimage import color, data, transform
from torch import Tensor

import normeq
from normeq.metrics import psnr
from normeq.models import shipped

FACTORS = (0.25, 0.5, 0.71, 0.84, 1.0, 1.19, 1.41, 2.0, 4.0)
TOLD = [name for name in shipped() if normeq.load(name).takes_sigma == "optional"]
every_level = pytest.mark.parametrize(
    ("name", "sigma"), [(name, sigma) for name in TOLD for sigma in (10, 25, 50)]
)


@lru_cache
def photographs(channels: int) -> Tensor:
    """Return squares of four photographs, with white at 1.

    At half their size: what noise they have themselves would be part of the truth.
    """
    found = (data.astronaut(), data.coffee(), data.chelsea(), data.rocket())
    halves = [transform.downscale_local_mean(image, (2, 2, 1)) for image in found]
    squares = [image[:144, 50:194] for image in halves]
    images = np.stack(squares) / 255
    if channels == 1:
        return torch.tensor(color.rgb2gray(images)[:, None], dtype=torch.float32)
    return torch.tensor(np.moveaxis(images, -1, 1), dtype=torch.float32)


@lru_cache
def results(name: str, sigma: float) -> tuple[Tensor, Tensor, dict[float, Tensor]]:
    """Return images, their noisy copies, and what a network makes of them for every level told."""
    net = normeq.load(name)
    clean = photographs(net.channels)
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    noisy = clean + sigma / 255 * noise
    fast = normeq.fold(net)
    told = (*FACTORS, 0.9, 1.1)
    with torch.inference_mode():
        outputs = {factor: fast(noisy, factor * sigma / 255) for factor in told}
    return clean, noisy, outputs


def quality(name: str, sigma: float, factor: float) -> float:
    clean, _, outputs = results(name, sigma)
    pairs = zip(outputs[factor].numpy(), clean.numpy(), strict=True)
    return float(np.mean([psnr(output, truth) for output, truth in pairs]))


@every_level
def test_what_is_removed_grows_with_the_level(name: str, sigma: float) -> None:
    _, noisy, outputs = results(name, sigma)
    removed = [float((noisy - outputs[factor]).std()) for factor in FACTORS]
    assert all(less < more for less, more in pairwise(removed))


@every_level
def test_half_and_twice_the_level_make_a_difference(name: str, sigma: float) -> None:
    _, _, outputs = results(name, sigma)
    for one, other in ((0.5, 1.0), (1.0, 2.0)):
        distance = (outputs[one] - outputs[other]).square().mean().sqrt()
        assert 255 * distance > 0.1 * sigma


@every_level
def test_the_true_level_is_among_the_best(name: str, sigma: float) -> None:
    best = max(FACTORS, key=lambda factor: quality(name, sigma, factor))
    assert best in (0.84, 1.0, 1.19)


@every_level
def test_an_error_of_ten_percent_does_little_harm(name: str, sigma: float) -> None:
    exact = quality(name, sigma, 1.0)
    assert min(quality(name, sigma, factor) for factor in (0.9, 1.1)) > exact - 0.1
