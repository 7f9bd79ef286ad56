"""What operations demand of their inputs: to share one law, to ignore gain, to ignore offset.

Each function reports to the operation what is not met, then returns what would hold if it were
fixed, so that everything further on is judged by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from normeq.certification.operation import Operation, planes_like
from normeq.certification.shadow import ANY, Shadow, near, span, tolerance

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


def merge(op: Operation, inputs: Sequence[Shadow], does: str, fix: str = SORT) -> Shadow:
    """Demand one law for all inputs, element by element: ``min``, ``where`` and the like.

    Which of the inputs comes out depends on the image, so its values are random ones.
    """
    shape = torch.broadcast_shapes(*(shadow.shape for shadow in inputs))
    first, *others = (planes_like(shadow, shape) for shadow in inputs)
    d, slack = first.d, first.slack
    lowest, highest = first.c, first.c
    degrees_differ = torch.zeros(shape, dtype=torch.bool)
    for other in others:
        d, differ = agree(d, other.d)
        degrees_differ |= differ
        slack = torch.maximum(slack, other.slack)
        lowest, highest = torch.minimum(lowest, other.c), torch.maximum(highest, other.c)
    if degrees_differ.any():
        op.blame("scale", f"it {does} things that scale differently.", fix)
    values = op.output(0.0, 0.0).v.broadcast_to(shape)
    if near(highest, lowest, slack).all():
        c = (lowest + highest) / 2
        return Shadow(d, c, values, slack + (highest - lowest) / 2)
    moving = span(torch.stack((lowest, highest)))
    op.blame(
        "shift",
        f"it {does} things that move differently with the offset (coefficients {moving}).",
        fix,
    )
    follows = torch.maximum(highest.abs(), lowest.abs()) > tolerance(slack)
    return Shadow(d, follows.to(torch.float64), values, slack)


def alike(
    op: Operation, shadow: Shadow, dims: Sequence[int], does: str, fix: str = SAME_KIND
) -> Shadow:
    """Demand one law along some axes; return the shadow with those axes of size one."""
    axes = [axis % max(shadow.c.ndim, 1) for axis in dims]
    if not axes or not shadow.c.ndim:
        return shadow
    known = shadow.d != ANY
    lowest = torch.where(known, shadow.d, torch.inf).amin(axes, keepdim=True)
    highest = torch.where(known, shadow.d, -torch.inf).amax(axes, keepdim=True)
    if ((highest > lowest) & highest.isfinite()).any():
        op.blame("scale", f"it {does} features that scale differently.", fix)
    low, high = shadow.c.amin(axes, keepdim=True), shadow.c.amax(axes, keepdim=True)
    slack = shadow.slack.amax(axes, keepdim=True)
    values = shadow.v.sum(axes, keepdim=True)
    if near(high, low, slack).all():
        return Shadow(lowest, (low + high) / 2, values, slack + (high - low) / 2)
    op.blame(
        "shift",
        f"it {does} features that move differently with the offset "
        f"(coefficients {span(shadow.c)}).",
        fix,
    )
    return Shadow(lowest, as_if_fixed(shadow).amax(axes, keepdim=True), values, slack)


def ignore_offset(op: Operation, shadow: Shadow, does: str, fix: str = SORT) -> Shadow:
    """Demand ``c = 0``; return the shadow with what is left of the offset counted as rounding."""
    if shadow.moves.any():
        moving = span(shadow.c[shadow.moves])
        op.blame(
            "shift", f"it {does} features that move with the offset (coefficient {moving}).", fix
        )
        return replace(shadow, c=as_if_fixed(shadow))
    return replace(shadow.still(), slack=shadow.slack + shadow.c.abs())


def ignore_gain(op: Operation, shadow: Shadow, does: str, fix: str) -> Shadow:
    """Demand ``d = 0``, of zeros as well: a curve may turn them into other numbers."""
    scaling = shadow.d[shadow.scales]
    if scaling.numel():
        op.blame(
            "scale",
            f"it {does} features of degree {span(scaling)}, but only degree 0 (ratios) would do.",
            fix,
            suspects=False,
        )
        return shadow
    return replace(shadow, d=torch.zeros_like(shadow.d))
