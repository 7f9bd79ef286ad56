from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from normeq.nn import Enclosed

LAYERS = {
    "sigmoid": nn.Sigmoid,
    "group norm": lambda: nn.GroupNorm(2, 4),
    "biased convolution": lambda: nn.Conv2d(4, 3, 3),
    "gated": lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.GLU(1)),
}


def moved(x: Tensor, offset: bool) -> Tensor:
    return 7 * x + (1000 if offset else 0)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_the_guarantee(name: str, offset: bool, dtype: torch.dtype) -> None:
    layer = Enclosed(LAYERS[name](), 0.7, offset=offset).to(dtype)
    x = torch.randn(2, 4, 6, 6, dtype=dtype)
    atol = 1e-6 if dtype == torch.float64 else 1e-2
    torch.testing.assert_close(layer(moved(x, offset)), moved(layer(x), offset), atol=atol, rtol=0)


@pytest.mark.parametrize("offset", [False, True])
def test_zeros_constants_and_gradients(offset: bool, dtype: torch.dtype) -> None:
    layer = Enclosed(nn.Sequential(nn.Conv2d(4, 4, 1), nn.Sigmoid()), offset=offset).to(dtype)
    for value in (0.0, 3.0):
        x = torch.full((1, 4, 5, 5), value, dtype=dtype, requires_grad=True)
        out = layer(x)
        if offset or not value:
            torch.testing.assert_close(out, torch.full_like(out, value))
        out.sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()


def test_samples_have_statistics_of_their_own() -> None:
    layer = Enclosed(nn.Tanh(), offset=True)
    x = torch.randn(2, 4, 6)
    x[1] *= 100
    torch.testing.assert_close(layer(x)[:1], layer(x[:1]))
    tokens = Enclosed(nn.Tanh(), batch_axis=1)
    torch.testing.assert_close(tokens(x.transpose(0, 1))[:, :1], tokens(x[:1].transpose(0, 1)))


def test_every_tensor_and_every_output_changes_along() -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor, other: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
            return torch.sigmoid(x) * other * mask, mask

    x, other = torch.randn(2, 1, 4, 6, 6, dtype=torch.float64)
    mask = torch.rand(6, 6) > 0.5
    layer = Enclosed(Two()).double()
    torch.testing.assert_close(layer(7 * x, 7 * other, mask)[0], 7 * layer(x, other, mask)[0])
    assert torch.equal(layer(x, other, mask)[1], mask)
