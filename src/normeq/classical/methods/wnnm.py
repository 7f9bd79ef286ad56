"""WNNM: weighted nuclear norm minimisation of groups of similar patches, iterated."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from normeq.classical.patch_matching import Aggregate, gather, match
from normeq.classical.plane_by_plane import Array, each_plane, positive_sigma

__all__ = ["wnnm"]

_REGULARISATION = 0.1  # share of the residual that is put back before each iteration
_ITERATIONS_PER_MATCHING = 2
_FEWER_PATCHES_PER_MATCHING = 10


def wnnm(
    image: Array,
    sigma: float,
    *,
    patch: int = 7,
    step: int = 3,
    radius: int = 20,
    count: int = 80,
    iterations: int = 12,
    strength: float = 2 * math.sqrt(2),
    remaining: float = 0.56,
    subtract_mean: bool = True,
) -> Array:
    """Shrink the singular values of patch groups: ``f(λy + μ, λσ) = λ f(y, σ) + μ``.

    With weights ``wᵢ = c √k σ² / sᵢ`` for the singular values ``sᵢ`` of a group of k patches, the
    weighted nuclear norm problem has the solution ``(sᵢ + √(sᵢ² - 4c√k σ²)) / 2``, or 0 where
    the root is not real.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    patch
        Side of the patches.
    step
        Spacing of the reference patches.
    radius
        Similar patches are searched up to this shift along each axis.
    count
        Patches in the groups of the first iterations.
    iterations
        Passes over the image; patches are matched anew in every second one.
    strength
        The constant c.
    remaining
        From the second pass on, the noise of a patch is taken to be
        ``remaining·√|σ² - d|``, d being the mean square of what has been removed from it.
    subtract_mean
        Set each group's mean patch aside while shrinking, as the authors' program does.
        Without it, as in the published equations, the method is only scale-equivariant.

    References
    ----------
    S. Gu, L. Zhang, W. Zuo and X. Feng, "Weighted nuclear norm minimization with application
    to image denoising", CVPR, 2014.

    Examples
    --------
    >>> import torch
    >>> noisy = 100 + 10 * torch.randn(16, 16, generator=torch.manual_seed(0))
    >>> bool(wnnm(noisy, 10.0, count=20, iterations=2).std() < 5)
    True
    """
    sigma = positive_sigma(sigma)

    def iterate(plane: Tensor) -> Tensor:
        # With means set aside an offset passes through: without it they round less.
        offset = plane.mean() if subtract_mean else 0.0
        estimate = plane = plane - offset
        groups: list[Tensor] = []
        for iteration in range(iterations):
            estimate = estimate + _REGULARISATION * (plane - estimate)
            matching, between = divmod(iteration, _ITERATIONS_PER_MATCHING)
            if between == 0:
                wanted = max(count - _FEWER_PATCHES_PER_MATCHING * matching, 1)
                found = match(estimate, patch, step=step, radius=radius, count=wanted)
                groups = [matches.corners for matches in found]
            aggregate = Aggregate(plane, patch)
            for corners in groups:
                patches = gather(estimate, corners, patch)
                if iteration == 0:
                    variance = plane.new_full((len(corners),), sigma**2)
                else:
                    removed = (gather(plane, corners[:, 0], patch) - patches[:, 0]).square()
                    variance = remaining**2 * (sigma**2 - removed.mean(1)).abs()
                mean = patches.mean(1, keepdim=True) if subtract_mean else 0.0
                energy = strength * math.sqrt(corners.shape[1]) * variance
                shrunk = _shrink_singular_values(patches - mean, energy) + mean
                aggregate.add(corners, shrunk, shrunk.new_ones(()))
            estimate = aggregate.mean()
        return estimate + offset

    return each_plane(image, iterate)


def _shrink_singular_values(groups: Tensor, energy: Tensor) -> Tensor:
    """Map each singular value s of the groups to ``(s + √(s² - 4·energy)) / 2``, or to 0."""
    if groups.shape[1] < groups.shape[2]:  # the smaller of the two Gram matrices will do
        return _shrink_singular_values(groups.mT, energy).mT
    power, directions = torch.linalg.eigh(groups.mT @ groups)
    excess = power - 4.0 * energy[:, None]
    gain = (1.0 + (excess / power).clamp_min(0.0).sqrt()) / 2.0
    gain = torch.where(excess > 0.0, gain, 0.0)
    shrunk: Tensor = groups @ (directions * gain[:, None, :]) @ directions.mT
    return shrunk
