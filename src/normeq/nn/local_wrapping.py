"""Equivariance for any network by normalising around each pixel, in windows of finite size."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.errors import UsageError


class LocallyNormalized(nn.Module):
    """Normalise around each pixel, apply any network, undo: ``f(λ·y + μ, λ·σ) = λ·f(y, σ) + μ``.

    ``f(y) = m + s·net((y - m)/s)`` with `m` the mean of a window around each pixel and `s` the root
    mean square of ``y - m`` there, but at least a fraction of that in a wider window; where that is
    0, too, the output is `m`. Windows are cut at the border. Unlike `Normalized`, which takes
    statistics of the whole image, it is local if the network is: a bright corner changes nothing
    far away, and tiles equal the whole.

    Parameters
    ----------
    inner
        A network from images to images, called as ``net(y)`` or ``net(y, sigma)`` with a map of
        noise levels. Where its output has another size, the statistics are interpolated, and where
        it has another number of channels, the mean over channels counts.
    radius
        Reach of the window to each side.
    wide_radius
        Reach of the wider window.
    floor
        The fraction of the wider window's spread.

    Examples
    --------
    >>> import torch
    >>> f = LocallyNormalized(torch.nn.Sigmoid()).double()
    >>> y = torch.rand(1, 1, 40, 40, dtype=torch.float64)
    >>> torch.allclose(f(7 * y + 1000), 7 * f(y) + 1000)
    True
    """

    def __init__(
        self, inner: nn.Module, radius: int = 16, wide_radius: int = 48, floor: float = 0.25
    ) -> None:
        super().__init__()
        if not 0 < radius <= wide_radius:
            raise UsageError(
                f"radius={radius} must be positive, at most wide_radius={wide_radius}."
            )
        self.inner = inner
        self.radius = radius
        self.wide_radius = wide_radius
        self.floor = floor

    @property
    def reach(self) -> int:
        """How far the statistics of a pixel see, beside what the network sees of them."""
        return self.radius + self.wide_radius

    def forward(self, y: Tensor, sigma: float | Tensor | None = None) -> Tensor:
        """Apply to a batch of shape ``(N, C, *spatial)``, with sigma in the units of `y`."""
        mean = _window_mean(y, self.radius)
        differences = y - mean
        power = differences.square().mean(1, keepdim=True)
        spread = torch.maximum(
            _root(_window_mean(power, self.radius)),
            self.floor * _root(_window_mean(power, self.wide_radius)),
        )
        # Infinity stands in for zero: unlike 1 it sets no scale.
        by = torch.where(spread == 0, math.inf, spread)
        out: Tensor = self.inner(differences / by, *([] if sigma is None else [_level(sigma, by)]))
        back = torch.where(spread == 0, 0.0, spread)
        return fitted(mean, out) + fitted(back, out) * out

    def extra_repr(self) -> str:
        """Describe the windows in a printed network."""
        return f"radius={self.radius}, wide_radius={self.wide_radius}, floor={self.floor:g}"


def _level(sigma: float | Tensor, by: Tensor) -> Tensor:
    """Return a map of noise levels in units of the local spread; whole numbers have no units."""
    if isinstance(sigma, Tensor) and not sigma.is_floating_point():
        return sigma
    level = torch.as_tensor(sigma, dtype=by.dtype, device=by.device)
    return (level.reshape(-1, *[1] * (by.ndim - 1)) if level.ndim < by.ndim else level) / by


def fitted(mean: Tensor, out: Tensor) -> Tensor:
    """Bring a local mean to the size of an output, and to its channels or to one.

    Examples
    --------
    >>> import torch
    >>> fitted(torch.ones(1, 3, 4, 4), torch.zeros(1, 1, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """
    if mean.shape[2:] != out.shape[2:]:
        mode = {3: "linear", 4: "bilinear", 5: "trilinear"}[mean.ndim]
        mean = F.interpolate(mean, size=out.shape[2:], mode=mode)
    if mean.shape[1] != out.shape[1]:
        mean = mean.mean(1, keepdim=True)
    return mean


def _window_mean(x: Tensor, radius: int) -> Tensor:
    """Average over windows that are cut at the border."""
    shape = x.shape
    for axis in range(2, x.ndim):  # one axis after the other: much less work
        reach = min(radius, shape[axis] - 1)
        columns = x.reshape(1, -1, shape[axis], math.prod(shape[axis + 1 :]))
        mean = F.avg_pool2d(columns, (2 * reach + 1, 1), 1, (reach, 0), count_include_pad=False)
        x = mean.reshape(shape)
    return x


def _root(power: Tensor) -> Tensor:
    """Take the square root, with a gradient of 0 at 0."""
    empty = power == 0
    return torch.where(empty, 0.0, torch.where(empty, math.inf, power).sqrt())
