from __future__ import annotations

import torch

from normeq.nn import AffineResidual


def test_it_starts_in_the_middle_and_is_trainable() -> None:
    residual = AffineResidual()
    a, b = torch.rand(3, 4), torch.rand(3, 4)
    torch.testing.assert_close(residual(a, b), (a + b) / 2)
    residual(a, b).sum().backward()
    torch.testing.assert_close(residual.t.grad, (b - a).sum())


def test_any_t_is_an_affine_combination(dtype: torch.dtype) -> None:
    residual = AffineResidual().to(dtype)
    a, b = torch.rand(3, 4, dtype=dtype), torch.rand(3, 4, dtype=dtype)
    for t in (-0.7, 0.0, 0.2, 1.0, 1.8):
        residual.t.data.fill_(t)
        torch.testing.assert_close(residual(a, b), (1 - t) * a + t * b)
        shifted = residual(3 * a + 5, 3 * b + 5)
        torch.testing.assert_close(shifted, 3 * residual(a, b) + 5)
