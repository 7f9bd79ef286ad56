from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import normeq
from normeq.errors import UsageError
from normeq.nn import Normalized

MODES = ["min-max", "mean-std"]


def shrink(y: Any, sigma: Any = 0.3) -> Any:
    """A thresholding without any of the properties."""
    return y * (abs(y) > sigma) + 0.1 * y**2


@pytest.mark.parametrize("mode", MODES)
def test_any_function_of_an_image_becomes_equivariant(mode: str) -> None:
    y = np.random.default_rng(1).random((9, 7))
    assert normeq.equivariance_error(shrink, y).shift > 0.1
    normeq.assert_equivariant(normeq.normalized(shrink, mode, a=-0.5, b=2.0), y)


@pytest.mark.parametrize("mode", MODES)
def test_sigma_is_scaled_with_the_image(mode: str) -> None:
    y = np.random.default_rng(1).random((9, 7))
    normeq.assert_equivariant(normeq.normalized(shrink, mode), y, sigma=0.2)


@pytest.mark.parametrize("sigma", [torch.tensor([0.1, 0.2, 0.3]), torch.full((3, 1, 4, 5), 0.2)])
def test_each_sample_has_its_own_statistics(sigma: Tensor) -> None:
    def shrink_batch(y: Tensor, sigma: Tensor) -> Tensor:
        return shrink(y, sigma.reshape(len(y), -1)[:, 0, None, None, None])

    layer = Normalized(shrink_batch, "mean-std")
    y = torch.rand(3, 2, 4, 5) * torch.tensor([1.0, 10.0, 100.0])[:, None, None, None]
    together = layer(y, sigma)
    for index in range(3):
        alone = layer(y[index : index + 1], sigma[index : index + 1])
        torch.testing.assert_close(together[index : index + 1], alone)


def test_whole_numbers_have_no_units() -> None:
    layer = Normalized(lambda y, steps: y * steps, "mean-std")
    y = torch.rand(2, 1, 4, 5, dtype=torch.float64)
    steps = torch.tensor([[[[2]]], [[[3]]]])
    torch.testing.assert_close(layer(7 * y + 100, steps), 7 * layer(y, steps) + 100)


def test_images_seen_from_behind() -> None:
    y = np.random.default_rng(1).random((9, 7))
    np.testing.assert_allclose(
        normeq.normalized(shrink)(y[::-1]), normeq.normalized(shrink)(y)[::-1]
    )


def test_min_max_fills_the_range() -> None:
    seen = []
    Normalized(lambda y: seen.append(y) or y, a=-2.0, b=3.0)(torch.rand(1, 1, 5, 5))
    assert seen[0].min() == -2
    assert seen[0].max() == 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", [0.1, 0.0, -1e6 / 3])
def test_a_constant_image_comes_back_unchanged(mode: str, value: float, dtype: torch.dtype) -> None:
    y = torch.full((1, 1, 7, 7), value, dtype=dtype, requires_grad=True)
    output = Normalized(nn.Conv2d(1, 1, 3, padding=1).to(dtype), mode)(y)
    assert torch.equal(output, y)
    output.sum().backward()
    assert y.grad.isfinite().all()


def test_outputs_may_have_another_shape() -> None:
    net = Normalized(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), "mean-std").double()
    normeq.assert_equivariant(net, torch.rand(2, 1, 3, 4, dtype=torch.float64))


@pytest.mark.parametrize(
    ("options", "sentence"), [({"mode": "median"}, "'median'"), ({"a": 1.0}, "smaller than b")]
)
def test_wrong_options_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Normalized(shrink, **options)
