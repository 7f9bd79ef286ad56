"""The residual form: the input added to a homogeneous function of its differences."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from normeq.nn import copy_pad
from normeq.nn.local_wrapping import fitted

#: How to average over windows, by the number of axes of a batch.
_AVERAGES = {3: F.avg_pool1d, 4: F.avg_pool2d, 5: F.avg_pool3d}


class OnDifferences(nn.Module):
    """Add the local mean to what a network makes of the rest: ``f(λ·y + μ) = λ·f(y) + μ``.

    ``f(y) = m + g(y - m)`` with `m` the mean of a window around each pixel: the residual form
    ``y + (g(Dy) - Dy)``, where the kernels of ``D = 1 - mean`` sum to zero. A network `g` that
    is scale-equivariant and hardly minds a smooth offset stays close to itself.

    Parameters
    ----------
    inner
        A scale-equivariant network from images to images; called with whatever further arguments
        `f` is called with. Where its output has another size, the local mean is interpolated, and
        where it has another number of channels, their mean is added to each.
    radius
        Reach of the window to each side.

    Examples
    --------
    >>> import torch
    >>> f = OnDifferences(torch.nn.ReLU()).double()
    >>> y = torch.rand(1, 1, 9, 9, dtype=torch.float64)
    >>> torch.allclose(f(7 * y + 1000), 7 * f(y) + 1000)
    True
    """

    def __init__(self, inner: nn.Module, radius: int = 7) -> None:
        super().__init__()
        self.inner = inner
        self.radius = radius

    def forward(self, y: Tensor, *rest: Any, **options: Any) -> Tensor:
        """Apply to a batch of shape ``(N, C, *spatial)`` with one to three spatial axes."""
        padded = copy_pad(y, (self.radius,) * 2 * (y.ndim - 2))
        mean = _AVERAGES[y.ndim](padded, 2 * self.radius + 1, 1)
        out: Tensor = self.inner(y - mean, *rest, **options)
        return fitted(mean, out) + out

    def extra_repr(self) -> str:
        """Describe the window in a printed network."""
        return f"radius={self.radius}"
