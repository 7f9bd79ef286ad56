"""NL-Ridge: linear or affine combinations of similar patches, with closed-form weights."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from normeq.classical.patch_matching import Aggregate, gather, match
from normeq.classical.plane_by_plane import Array, each_plane, positive_sigma
from normeq.errors import UsageError

__all__ = ["nlridge"]

Constraint = Literal["affine", "linear"]

# Added to the first step's Q, in units of nσ²: where there is less noise than sigma says, the
# weights, meant to remove it, would amplify what is there. On Set12 it costs 0.01 dB.
_RIDGE = 0.01


def nlridge(
    image: Array,
    sigma: float,
    *,
    constraint: Constraint = "affine",
    patch: int = 9,
    step: int = 4,
    radius: int = 18,
    counts: tuple[int, int] = (18, 90),
) -> Array:
    """Combine similar patches affinely, twice: ``f(λy + μ, λσ) = λ f(y, σ) + μ``.

    A group of k similar patches of n pixels, the columns of Y, is estimated by ``YΘ`` with
    ``Θ = I - nσ² Q⁻¹`` (linear) or the same problem's solution under ``Θᵀ1 = 1`` (affine),
    where ``Q = YᵀY`` in the first step and ``Q = X̂ᵀX̂ + nσ²I`` in the second, X̂ being the
    first step's estimate.

    Parameters
    ----------
    image
        Array or tensor of shape ``(..., height, width)``, in any units.
    sigma
        Standard deviation of the noise, in the image's units.
    constraint
        With ``"linear"`` the weights are free, and only ``f(λy, λσ) = λ f(y, σ)`` holds.
    patch
        Side of the patches.
    step
        Spacing of the reference patches.
    radius
        Similar patches are searched up to this shift along each axis.
    counts
        Patches in the groups of the two steps.

    References
    ----------
    S. Herbreteau and C. Kervrann, "Towards a unified view of unsupervised non-local methods
    for image denoising: the NL-Ridge approach", ICIP, 2022.

    Examples
    --------
    >>> import torch
    >>> noisy = 100 + 10 * torch.randn(24, 24, generator=torch.manual_seed(0))
    >>> clean = nlridge(noisy, 10.0)
    >>> torch.allclose(nlridge(2 * noisy - 7, 20.0), 2 * clean - 7, atol=0.01)
    True
    """
    sigma = positive_sigma(sigma)
    if constraint not in get_args(Constraint):
        raise UsageError(f"constraint is {constraint!r}; choose 'affine' or 'linear'.")
    energy = patch**2 * sigma**2
    affine = constraint == "affine"

    def both_steps(plane: Tensor) -> Tensor:
        # Affine combinations pass an offset through: without it they round less.
        offset = plane.mean() if affine else 0.0
        estimate = plane = plane - offset
        # The noisy patches hold the noise's energy already; the first estimate lacks it.
        for count, missing in zip(counts, (_RIDGE * energy, energy), strict=True):
            aggregate = Aggregate(plane, patch)
            for corners, _ in match(estimate, patch, step=step, radius=radius, count=count):
                guide = gather(estimate, corners, patch)
                weights = _combination(guide, missing, energy, affine)
                patches = weights.mT @ gather(plane, corners, patch)
                confidence = 1.0 / weights.square().sum(1).clamp(1.0 / corners.shape[1], 1.0)
                aggregate.add(corners, patches, confidence[..., None])
            estimate = aggregate.mean()
        return estimate + offset

    return each_plane(image, both_steps)


def _combination(guide: Tensor, missing: float, energy: float, affine: bool) -> Tensor:
    """Return the weights Θ of groups of k patches, given as rows, of shape ``(groups, k, k)``.

    Affine weights do not see an offset of the group: removing it first only helps rounding.
    """
    if affine:
        guide = guide - guide.mean((1, 2), keepdim=True)
    identity = torch.eye(guide.shape[1]).to(guide)
    quadratic = guide @ guide.mT
    rounding = 10 * torch.finfo(guide.dtype).eps * guide.square().sum((1, 2))
    inverse = torch.cholesky_inverse(
        torch.linalg.cholesky(quadratic + (missing + rounding[:, None, None]) * identity)
    )
    if affine:
        ones = inverse.sum(1, keepdim=True)
        inverse = inverse - ones.mT @ (ones / ones.sum(2, keepdim=True))
    return identity - energy * inverse
