"""Laws of softmax, attention and dropout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from normeq.certification.operation import Operation, law, planes_like
from normeq.certification.rules.demands import alike, ignore_gain, ignore_offset
from normeq.certification.rules.elementwise import RATIOS
from normeq.certification.rules.products import WEIGHTED, as_shadow
from normeq.certification.shadow import ANY, Shadow, scrambled

DROPOUT = "eval mode, or dropout on differences only"


@law("softmax", "_softmax", "softmin", "log_softmax", "_log_softmax")
def softmax(op: Operation, x: Shadow, dim: int, *_: Any) -> Shadow:
    """Weights that add up to one; an offset that all of its inputs share cancels."""
    ignore_gain(op, x, "takes the softmax of", RATIOS)
    common = alike(op, x, [dim], "takes the softmax of", RATIOS)
    zero = torch.zeros_like(x.slack)
    values = scrambled("log_softmax" if "log" in op.name else "softmax", x.v)
    if "log" not in op.name:
        values = values / values.sum(dim, keepdim=True)
    return Shadow(zero, zero, values, common.slack.expand(x.shape) + op.eps)


@law("logsumexp")
def logsumexp(op: Operation, x: Shadow, dim: Any, *_: Any) -> Shadow:
    """Let a common offset pass, but no gain."""
    does = "takes the logarithm of a sum of exponentials of"
    dims = [dim] if isinstance(dim, int) else dim
    common = alike(op, ignore_gain(op, x, does, RATIOS), dims, does, RATIOS)
    return op.refreshed(common.map(lambda plane: plane.reshape(tuple(op.shapes[0]))))


@law("scaled_dot_product_attention", many=True)
def attention(
    op: Operation,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    **_: Any,
) -> Shadow:
    """Weighted means of the values, with weights that must see neither gain nor offset."""
    q, k, v = (as_shadow(s) for s in (query, key, value))
    _demand_ratios(op, q, k)
    if isinstance(mask, Shadow):
        ignore_gain(op, mask, "takes the softmax of", RATIOS)
        alike(op, mask, [-1], "takes the softmax of", RATIOS)
    if mask is not None and v.moves.any():
        _demand_something_to_average(op, mask)
    if dropout:
        ignore_offset(op, v, "drops, at random, some of", DROPOUT)
    slack = op.eps + max(float(s.slack.max()) for s in (q, k, v))
    common = alike(op, v, [-2], "averages")
    means = replace(common, slack=common.slack + slack)
    return op.refreshed(planes_like(means, op.shapes[0]))


def _demand_ratios(op: Operation, query: Shadow, key: Shadow) -> None:
    """Demand products of queries and keys that neither gain nor offset changes."""
    degrees = []
    for factor in (query, key):
        still = ignore_offset(op, factor, "multiplies", WEIGHTED).still()
        common = alike(op, still, range(factor.c.ndim), "sums products of")
        degrees.append(float(common.d.reshape(-1)[0]))
    if sum(degrees) not in (0.0, ANY):
        scores = replace(query.still(), d=torch.full_like(query.d, sum(degrees)))
        ignore_gain(op, scores, "takes the softmax of", RATIOS)


def _demand_something_to_average(op: Operation, mask: Any) -> None:
    """Blame a mask that hides all values from a query: torch gives 0, whatever the offset."""
    fix = "a mask that leaves something to each query"
    if isinstance(mask, Shadow):
        reason = "its mask depends on the image, and may hide everything from a query."
        op.blame("shift", reason, fix, unknown=True)
        return
    seen = mask if mask.dtype == torch.bool else mask > -torch.inf
    if not seen.any(-1).all():
        op.blame("shift", "its mask hides everything from a query, which becomes 0.", fix)


@law("dropout")
def dropout(op: Operation, x: Shadow, p: float = 0.5, training: bool | None = True, *_: Any) -> Any:
    """Drop values at random, which is fine where the offset does not matter."""
    out = x
    if training and p:
        out = ignore_offset(op, x, "drops, at random, some of", DROPOUT)
        out = out.with_values(op.output(0.0, 0.0).v)
    masks = [op.output(0.0, 0.0, index) for index in range(1, len(op.shapes))]
    return [out, *masks] if masks else out
