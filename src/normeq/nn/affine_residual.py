"""Affine residual connections."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AffineResidual(nn.Module):
    """Combine two branches affinely: ``r(λ·a + μ, λ·b + μ) = λ·r(a, b) + μ``.

    ``r(a, b) = (1 - t)·a + t·b`` with a trainable scalar ``t`` that starts at one half.

    Examples
    --------
    >>> import torch
    >>> AffineResidual()(torch.tensor(2.0), torch.tensor(4.0)).item()
    3.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.t = nn.Parameter(torch.tensor(0.5))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Return ``(1 - t)·a + t·b``."""
        return torch.lerp(a, b, self.t)
