"""Laws of normalisation layers, spreads, softmax, attention and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, planes_like, span
from normeq.certification.rules.demands import agree, alike, ignore_gain, ignore_offset
from normeq.certification.rules.elementwise import RATIOS
from normeq.certification.rules.linear import WEIGHTED, dynamic
from normeq.certification.shadow import ANY, Shadow, Weights, clean, lift

NO_EPSILON = "no epsilon (0/0 = 0 instead), and its input's spread multiplied back at the end"
FOLD = "fold it into the convolution before it, then constrain that (normeq.convert does both)"


@law("batch_norm")
def batch_norm(
    step: Operation, x: Shadow, weight: Any, bias: Any, mean: Any, variance: Any, *rest: Any
) -> Any:
    """With running statistics a gain and a bias for each channel; else statistics of the batch."""
    # The rest is [training,] momentum, epsilon [, ...].
    training = isinstance(rest[0], bool) and rest[0]
    eps = [number for number in rest if not isinstance(number, bool)][1]
    if training or mean is None:
        for which in ("scale", "shift"):
            step.blame(which, "it uses statistics of the whole batch.", "eval mode, then fold it")
        return _outputs(step, replace(x, weights=None))
    gain = (variance + eps).rsqrt() * (1.0 if weight is None else weight)
    shift = (0.0 if bias is None else bias) - mean * gain
    shape = (1, -1, *[1] * (x.c.ndim - 2))
    c = x.c * gain.view(shape)
    out = Shadow(x.d, c, (x.slack * gain.view(shape)).hypot(step.eps * c))
    ideal = Shadow(x.d, x.moves * gain.view(shape), out.slack)
    if not clean(ideal):
        step.suspect("shift", f"its gains are {span(gain)}, not one.", FOLD)
    d, clash = agree(x.d, lift(shift).d.view(shape).expand(x.shape))
    if clash.any():
        step.blame("scale", "its shift is a bias, which stays when the image is scaled.", FOLD)
        d = x.d
    return _outputs(step, replace(out, d=d))


def _outputs(step: Operation, first: Shadow) -> Any:
    """Add the outputs that hold statistics."""
    if len(step.shapes) == 1:
        return first
    rest = [step.output(0.0, 0.0, index) for index in range(1, len(step.shapes))]
    return [first, *rest]


@law("layer_norm", "native_layer_norm")
def layer_norm(
    step: Operation, x: Shadow, shape: Sequence[int], weight: Any, bias: Any, eps: float, *_: Any
) -> Any:
    """Mean and spread over the last axes are taken out; the native form returns them, too."""
    axes = range(-len(shape), 0)
    out = _normalise(step, x, axes, eps)
    if len(step.shapes) == 1:
        return out
    mean = alike(step, x, axes, "takes the mean and spread of")
    return [out, mean, _reciprocal(mean)]


def _reciprocal(mean: Shadow) -> Shadow:
    """Return the shadow of one over the spread of what has this mean."""
    d = torch.where(mean.d == ANY, ANY, -mean.d)
    return Shadow(d, torch.zeros_like(mean.c), mean.slack)


@law("group_norm")
def group_norm(step: Operation, x: Shadow, groups: int, *rest: Any) -> Shadow:
    """Mean and spread of each group of channels are taken out."""
    eps = next((r for r in rest if isinstance(r, float)), 1e-5)
    grouped = x.map(lambda plane: plane.reshape(plane.shape[0], groups, -1))
    out = _normalise(step, grouped, [2], eps)
    return out.map(lambda plane: plane.reshape(x.shape))


@law("instance_norm")
def instance_norm(
    step: Operation,
    x: Shadow,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    own: bool,
    *rest: Any,
) -> Any:
    """Mean and spread of each channel are taken out; running ones act as in batch norm."""
    if not own:
        return batch_norm(step, x, weight, bias, mean, variance, False, *rest)
    return _normalise(step, x, range(2, x.c.ndim), rest[1])


def _normalise(step: Operation, x: Shadow, dims: Sequence[int], eps: float) -> Shadow:
    alike(step, x, dims, "takes the mean and spread of")
    if eps and ((x.d != 0) & (x.d != ANY)).any():
        step.blame("scale", f"it adds the fixed number {eps:g} to the variance.", NO_EPSILON)
    if ((x.d != 0) & (x.d != ANY)).any():
        step.suspect("scale", "it takes the scale of the image away.", NO_EPSILON)
    return Shadow(torch.zeros_like(x.d), torch.zeros_like(x.c), x.slack + step.eps)


@law("rms_norm", "_fused_rms_norm")
def rms_norm(step: Operation, x: Shadow, shape: Sequence[int], *rest: Any) -> Any:
    """Divide by the root mean square."""
    eps = next((r for r in rest if isinstance(r, float)), step.eps)
    out = ignore_offset(step, x, "divides by the size of", WEIGHTED)
    differences, axes = out.with_c(out.c * 0), range(-len(shape), 0)
    normed = _normalise(step, differences, axes, eps)
    if len(step.shapes) == 1:
        return normed
    return [normed, _reciprocal(alike(step, differences, axes, "divides by the size of"))]


@law("var", "std", "var_mean", "std_mean")
def spread(step: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Any:
    """Variance and standard deviation do not see a common offset."""
    dims = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else None)
    common = alike(step, x, _listed(dims, x.c.ndim), "takes the spread of")
    degree = 2.0 if step.operation.startswith("var") else 1.0

    def shaped(plane: Tensor, index: int = 0) -> Tensor:
        return plane.reshape(tuple(step.shapes[index]))

    d = torch.where(common.d == ANY, ANY, common.d * degree)
    zero = torch.zeros_like(common.c)
    out = Shadow(shaped(d), shaped(zero), shaped(common.slack))
    if len(step.shapes) == 1:
        return out
    return [out, common.map(lambda plane: shaped(plane, 1))]


@law("linalg_vector_norm", "norm", "frobenius_norm")
def vector_norm(
    step: Operation, x: Shadow, order: Any = 2, dim: Any = None, *_: Any, **__: Any
) -> Any:
    """Take a norm, which scales with its input (order 0 counts) and must not see the offset."""
    out = ignore_offset(step, x, "takes the norm of", WEIGHTED)
    dims = _listed(dim, x.c.ndim)
    common = alike(step, out.with_c(out.c * 0), dims, "takes the norm of")
    if order == 0:
        common = replace(common, d=torch.zeros_like(common.d))
    return common.map(lambda plane: plane.reshape(tuple(step.shapes[0])))


def _listed(dims: int | Sequence[int] | None, ndim: int) -> Sequence[int]:
    """List the axes that an argument stands for; none stands for all."""
    if isinstance(dims, int):
        return [dims]
    return dims or range(ndim)


@law("softmax", "_softmax", "softmin", "log_softmax", "_log_softmax")
def softmax(step: Operation, x: Shadow, dim: int, *_: Any) -> Shadow:
    """Weights that add up to one; an offset that all of its inputs share cancels."""
    ignore_gain(step, x, "takes the softmax of", RATIOS)
    common = alike(step, x, [dim], "takes the softmax of", RATIOS)
    zero = torch.zeros_like(x.c)
    out = Shadow(zero, zero, common.slack.expand(x.shape) + step.eps)
    if "log" in step.operation:
        return out
    return replace(out, weights=_groups(x.shape, dim))


def _groups(shape: torch.Size, dim: int) -> Weights:
    """Mark the elements along an axis as groups that add up to one."""
    size = shape[dim]
    member = torch.arange(shape.numel(), dtype=torch.float64).reshape(shape)
    group = member.narrow(dim, 0, 1).expand(shape)
    return Weights(group, member, size)


@law("logsumexp")
def logsumexp(step: Operation, x: Shadow, dim: Any, *_: Any) -> Shadow:
    """Let a common offset pass, but no gain."""
    does = "takes the logarithm of a sum of exponentials of"
    dims = [dim] if isinstance(dim, int) else dim
    common = alike(step, ignore_gain(step, x, does, RATIOS), dims, does, RATIOS)
    return common.map(lambda plane: plane.reshape(tuple(step.shapes[0])))


@law("scaled_dot_product_attention", many=True)
def attention(
    step: Operation,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    **_: Any,
) -> Shadow:
    """Weighted means of the values, with weights that must see neither gain nor offset."""
    q, k, v = (s if isinstance(s, Shadow) else lift(s) for s in (query, key, value))
    slack = step.eps + max(float(s.slack.max()) for s in (q, k, v))
    scores = dynamic(step, q, k)
    ignore_gain(step, scores, "takes the softmax of", RATIOS)
    if isinstance(mask, Shadow):
        ignore_gain(step, mask, "takes the softmax of", RATIOS)
        alike(step, mask, [-1], "takes the softmax of", RATIOS)
    if mask is not None and v.moves.any():
        _demand_something_to_average(step, mask)
    if dropout:
        ignore_offset(step, v, "drops, at random, some of", DROPOUT)
    common = alike(step, v, [-2], "averages")
    means = Shadow(common.d, common.c, common.slack + slack)
    return planes_like(means, step.shapes[0])


def _demand_something_to_average(step: Operation, mask: Any) -> None:
    """Blame a mask that hides all values from a query: torch gives 0, whatever the offset."""
    fix = "a mask that leaves something to each query"
    if isinstance(mask, Shadow):
        reason = "its mask depends on the image, and may hide everything from a query."
        step.blame("shift", reason, fix, unknown=True)
        return
    seen = mask if mask.dtype == torch.bool else mask > -torch.inf
    if not seen.any(-1).all():
        step.blame("shift", "its mask hides everything from a query, which becomes 0.", fix)


DROPOUT = "eval mode, or dropout on differences only"


@law("dropout")
def dropout(
    step: Operation, x: Shadow, p: float = 0.5, training: bool | None = True, *_: Any
) -> Any:
    """Drop values at random, which is fine where the offset does not matter."""
    if not training or not p:
        return _outputs(step, x)
    return _outputs(step, ignore_offset(step, x, "drops, at random, some of", DROPOUT))
