from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from normeq.certification import Status, certify
from normeq.errors import UsageError
from normeq.nn import LocallyNormalized


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.SiLU(), nn.Conv2d(4, 1, 3, padding=1))


def test_the_guarantee(dtype: torch.dtype) -> None:
    f = LocallyNormalized(network(), 3, 8).to(dtype)
    y = torch.rand(2, 1, 20, 30, dtype=dtype)
    atol = 1e-6 if dtype == torch.float64 else 2e-2
    with torch.no_grad():
        torch.testing.assert_close(f(7 * y + 1000), 7 * f(y) + 1000, atol=atol, rtol=0)
    assert certify(f, y).norm is Status.PROVEN


def test_noise_levels_are_in_units_of_the_image() -> None:
    class Told(nn.Module):
        def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
            return torch.tanh(x) + sigma

    f = LocallyNormalized(Told(), 3, 8).double()
    y = torch.rand(2, 1, 20, 30, dtype=torch.float64)
    for sigma in (0.3, torch.tensor([0.2, 0.4]), torch.rand(2, 1, 20, 30)):
        torch.testing.assert_close(f(7 * y + 1000, 7 * sigma), 7 * f(y, sigma) + 1000)


def test_outputs_may_have_another_shape() -> None:
    class Enlarging(nn.Module):
        def forward(self, x: Tensor, steps: Tensor) -> Tensor:
            return torch.sigmoid(steps * x[:, :2]).repeat_interleave(2, -1)

    f = LocallyNormalized(Enlarging(), 3, 8).double()
    y, steps = torch.rand(2, 3, 6, 10, dtype=torch.float64), torch.tensor(3)
    assert f(y, steps).shape == (2, 2, 6, 20)
    torch.testing.assert_close(f(7 * y + 1000, steps), 7 * f(y, steps) + 1000)


def test_windows_are_cut_and_far_pixels_do_not_matter() -> None:
    f = LocallyNormalized(network(), 3, 8)
    y = torch.rand(1, 1, 12, 60)
    changed = y.clone()
    changed[..., 0] += 1e4
    far = f.reach + 2  # and the network's own reach
    with torch.no_grad():
        torch.testing.assert_close(f(changed)[..., far + 1 :], f(y)[..., far + 1 :])
        whole, tile = f(y), f(y[..., 10:])
    torch.testing.assert_close(tile[..., far:], whole[..., 10 + far :])


def test_constants_come_back_and_gradients_are_finite() -> None:
    f = LocallyNormalized(network(), 3, 8)
    for y in (torch.zeros(1, 1, 9, 9), torch.full((1, 1, 1, 1), 5.0)):
        y.requires_grad_()
        out = f(y)
        torch.testing.assert_close(out, y)
        out.sum().backward()
        assert y.grad is not None
        assert y.grad.isfinite().all()


def test_windows_must_nest() -> None:
    with pytest.raises(UsageError, match="wide_radius"):
        LocallyNormalized(network(), 9, 8)
