"""What operations demand of their inputs: to share one law, to ignore gain, to ignore offset.

Each function reports to the step what is not met, then returns what would hold if it were fixed,
so that everything further on is judged on its own account.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from normeq.certification.operation import Operation, planes_like, span
from normeq.certification.shadow import ANY, Shadow, near, tolerance

#: The fix for nonlinearities on features that follow the offset.
SORT = (
    "sort pooling (normeq.nn.SortPool) in its place, or differences before it "
    "(normeq.nn.ZeroSumConv2d)"
)


#: The fix for what mixes features that move differently.
SAME_KIND = "features of one kind before it (kernels that all sum to one, or all to zero)"


def agree(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Join degrees: the common one, and where they disagree."""
    joined = torch.where(a == ANY, b, a)
    return joined, (a != b) & (a != ANY) & (b != ANY)


def as_if_fixed(shadow: Shadow) -> Tensor:
    """Coefficients as they were if features that move with the offset followed it exactly."""
    return shadow.moves.to(torch.float64)


def merge(step: Operation, inputs: Sequence[Shadow], does: str, fix: str = SORT) -> Shadow:
    """Demand one law for all inputs, element by element: ``min``, ``where`` and the like."""
    shape = torch.broadcast_shapes(*(shadow.shape for shadow in inputs))
    first, *others = (planes_like(shadow, shape) for shadow in inputs)
    d, c, slack = first.d, first.c, first.slack
    degrees_differ = torch.zeros(shape, dtype=torch.bool)
    lowest, highest = c, c
    for other in others:
        d, differ = agree(d, other.d)
        degrees_differ |= differ
        slack = torch.maximum(slack, other.slack)
        lowest, highest = torch.minimum(lowest, other.c), torch.maximum(highest, other.c)
    if degrees_differ.any():
        step.blame("scale", f"it {does} things that scale differently.", fix)
    halfway = (lowest + highest) / 2
    if near(highest, lowest, slack).all():
        return Shadow(d, halfway, slack + (highest - lowest) / 2)
    moving = torch.stack((lowest, highest))
    step.blame(
        "shift",
        f"it {does} things that move differently with the offset (coefficients {span(moving)}).",
        fix,
    )
    follows = torch.maximum(highest.abs(), lowest.abs()) > tolerance(slack)
    return Shadow(d, follows.to(torch.float64), slack)


def alike(
    step: Operation, shadow: Shadow, dims: Sequence[int], does: str, fix: str = SAME_KIND
) -> Shadow:
    """Demand one law along some axes; return the shadow with those axes of size one."""
    axes = [axis % max(shadow.c.ndim, 1) for axis in dims]
    if not axes or not shadow.c.ndim:
        return shadow
    known = shadow.d != ANY
    lowest = torch.where(known, shadow.d, torch.inf).amin(axes, keepdim=True)
    highest = torch.where(known, shadow.d, -torch.inf).amax(axes, keepdim=True)
    if ((highest > lowest) & highest.isfinite()).any():
        step.blame("scale", f"it {does} features that scale differently.", fix)
    low, high = shadow.c.amin(axes, keepdim=True), shadow.c.amax(axes, keepdim=True)
    slack = shadow.slack.amax(axes, keepdim=True)
    c = (low + high) / 2
    if not near(high, low, slack).all():
        coefficients = span(shadow.c)
        step.blame(
            "shift",
            f"it {does} features that move differently with the offset "
            f"(coefficients {coefficients}).",
            fix,
        )
        c = as_if_fixed(shadow).amax(axes, keepdim=True)
        return Shadow(lowest, c, slack)
    return Shadow(lowest, c, slack + (high - low) / 2)


def ignore_offset(step: Operation, shadow: Shadow, does: str, fix: str = SORT) -> Shadow:
    """Demand ``c = 0``; return the shadow with what is left of the offset counted as rounding."""
    if shadow.moves.any():
        moving = span(shadow.c[shadow.moves])
        step.blame(
            "shift", f"it {does} features that move with the offset (coefficient {moving}).", fix
        )
        return Shadow(shadow.d, as_if_fixed(shadow), shadow.slack)
    return Shadow(shadow.d, torch.zeros_like(shadow.c), shadow.slack + shadow.c.abs())


def ignore_gain(step: Operation, shadow: Shadow, does: str, fix: str) -> Shadow:
    """Demand ``d = 0``, of zeros as well: a curve may turn them into other numbers."""
    scaling = shadow.d[(shadow.d != 0) & (shadow.d != ANY)]
    if scaling.numel():
        step.blame(
            "scale",
            f"it {does} features of degree {span(scaling)}, but only degree 0 (ratios) would do.",
            fix,
            suspects=False,
        )
        return shadow
    return Shadow(torch.zeros_like(shadow.d), shadow.c, shadow.slack)
