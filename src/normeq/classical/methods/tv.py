"""Total variation denoising with the noise level as a constraint."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from normeq.classical.plane_by_plane import Array, each_plane, positive_sigma

__all__ = ["tv"]


def tv(image: Array, sigma: float, *, tolerance: float = 1e-4, iterations: int = 1000) -> Array:
    """Smooth until the noise is removed: ``f(λy + μ, λσ) = λ f(y, σ) + μ``.

    The result x has the least total variation among the images with ``‖y - x‖² = nσ²``, n
    being the number of pixels. An image whose whole deviation from its mean is less than
    that becomes its mean.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    tolerance
        The solver stops when the duality gap falls to this share of the total variation and
        the constraint holds to this share of sigma.
    iterations
        Steps of the solver after which it stops in any case.

    References
    ----------
    L. Rudin, S. Osher and E. Fatemi, "Nonlinear total variation based noise removal
    algorithms", Physica D, 1992; the weight is found as in A. Chambolle, "An algorithm for
    total variation minimization and applications", Journal of Mathematical Imaging and
    Vision, 2004, and the dual problem solved as in A. Beck and M. Teboulle, "Fast
    gradient-based algorithms for constrained total variation image denoising and deblurring
    problems", IEEE Transactions on Image Processing, 2009.

    Examples
    --------
    >>> import torch
    >>> noisy = torch.arange(32.0).expand(32, 32) + torch.randn(32, 32)
    >>> removed = noisy - tv(noisy, 1.0)
    >>> round(removed.square().mean().sqrt().item(), 2)
    1.0
    """
    sigma = positive_sigma(sigma)
    return each_plane(image, lambda plane: _constrained(plane, sigma, tolerance, iterations))


def _constrained(plane: Tensor, sigma: float, tolerance: float, iterations: int) -> Tensor:
    """Solve for the dual field p, ``|p| ≤ 1`` and ``x = y + weight·div p``, and for the weight.

    With a given weight, x minimises ``‖y - x‖²/2 + weight·TV(x)``; what is removed grows with
    the weight, so the weight follows the constraint while the field converges. All of it is
    in the units of sigma, and of differences of pixels: gains and offsets pass through.
    """
    offset = plane.mean()
    centred = (plane - offset) / sigma
    target = math.sqrt(plane.numel())
    if float(centred.norm()) <= target:
        return offset.expand_as(plane).clone()
    weight = 1.0
    field = momentum = centred.new_zeros(2, *plane.shape)
    pace = 1.0
    for _ in range(iterations):
        gradient = _gradient(centred + weight * _divergence(momentum))
        moved = momentum + gradient / (8.0 * weight)
        moved = moved / moved.square().sum(0).sqrt().clamp_min(1.0)
        next_pace = (1.0 + math.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        momentum = moved + (pace - 1.0) / next_pace * (moved - field)
        field, pace = moved, next_pace
        removed = _divergence(field)
        gradient = _gradient(centred + weight * removed)
        variation = float(gradient.square().sum(0).sqrt().sum())
        gap = variation - float((field * gradient).sum())
        error = target / (weight * float(removed.norm())) - 1.0
        if abs(error) <= tolerance and gap <= tolerance * variation:
            break
        weight *= 1.0 + error
    return offset + sigma * (centred + weight * removed)


def _gradient(plane: Tensor) -> Tensor:
    """Forward differences down and to the right, zero at the far borders."""
    down = torch.diff(plane, dim=0, append=plane[-1:])
    right = torch.diff(plane, dim=1, append=plane[:, -1:])
    return torch.stack([down, right])


def _divergence(field: Tensor) -> Tensor:
    """Minus the adjoint of the gradient, for fields that vanish at the far borders."""
    down, right = field
    return torch.diff(down, dim=0, prepend=torch.zeros_like(down[:1])) + torch.diff(
        right, dim=1, prepend=torch.zeros_like(right[:, :1])
    )
