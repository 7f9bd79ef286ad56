"""Laws of normalization layers, spreads and norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, planes_like
from normeq.certification.rules.demands import agree, alike, ignore_offset
from normeq.certification.rules.products import WEIGHTED, as_shadow
from normeq.certification.shadow import ANY, Property, Shadow, clean, lift, span

NO_EPSILON = "no epsilon (0/0 = 0 instead), and its input's spread multiplied back at the end"
FOLD = "fold it into the convolution before it, then constrain that (normeq.convert does both)"


@law("batch_norm")
def batch_norm(
    op: Operation, x: Shadow, weight: Any, bias: Any, mean: Any, variance: Any, *rest: Any
) -> Any:
    """With running statistics a gain and a bias for each channel.

    Statistics of the batch are lawful only for ratios: each sample has a gain of its own.
    """
    # The rest is [training,] momentum, epsilon [, ...].
    training = isinstance(rest[0], bool) and rest[0]
    eps = [number for number in rest if not isinstance(number, bool)][1]
    if training or mean is None:
        lost: list[tuple[Property, Tensor]] = [("scale", x.scales), ("shift", x.moves)]
        for which, changes in lost:
            if changes.any():
                op.blame(which, "it uses statistics of the whole batch.", "eval mode, then fold it")
        return _with_statistics(op, op.refreshed(x))
    shape = (1, -1, *[1] * (x.c.ndim - 2))
    gain = (variance + eps).rsqrt() * (1.0 if weight is None else weight)
    shift = lift((0.0 if bias is None else bias) - mean * gain)
    by = gain.view(shape)
    c = x.c * by
    out = Shadow(x.d, c, x.v * by + shift.v.view(shape), (x.slack * by).hypot(op.eps * c))
    if not clean(replace(out, c=x.moves * by)):
        op.suspect("shift", f"its gains are {span(gain)}, not one.", FOLD)
    d, clash = agree(x.d, shift.d.view(shape).expand(x.shape))
    if clash.any():
        op.blame("scale", "its shift is a bias, which stays when the image is scaled.", FOLD)
        d = x.d
    return _with_statistics(op, replace(out, d=d))


def _with_statistics(op: Operation, first: Shadow) -> Any:
    """Add the outputs that hold statistics."""
    if len(op.shapes) == 1:
        return first
    return [first, *(op.output(0.0, 0.0, index) for index in range(1, len(op.shapes)))]


@law("layer_norm", "native_layer_norm")
def layer_norm(
    op: Operation, x: Shadow, shape: Sequence[int], weight: Any, bias: Any, eps: float, *_: Any
) -> Any:
    """Mean and spread over the last axes are taken out; the native form returns them, too."""
    axes = range(-len(shape), 0)
    out = _normalised(op, x, axes, eps)
    if len(op.shapes) == 1:
        return out
    mean = alike(op, x, axes, "takes the mean and spread of")
    return [out, op.refreshed(mean, 1), op.refreshed(_reciprocal(mean), 2)]


def _reciprocal(mean: Shadow) -> Shadow:
    """Return the shadow of one over the spread of what has this mean."""
    return replace(mean.still(), d=torch.where(mean.d == ANY, ANY, -mean.d))


@law("group_norm", "native_group_norm")
def group_norm(op: Operation, x: Shadow, *rest: Any) -> Any:
    """Mean and spread of each group of channels are taken out."""
    # Arguments: groups, weight, bias, epsilon; or, native: weight, bias, N, C, HxW, groups, eps.
    groups = rest[5] if op.name.startswith("native") else rest[0]
    eps = next((number for number in reversed(rest) if isinstance(number, float)), 1e-5)
    grouped = x.map(lambda plane: plane.reshape(plane.shape[0], groups, -1))
    out = _normalised(op, grouped, [2], eps, x.shape)
    return _with_statistics(op, out)


@law("instance_norm")
def instance_norm(
    op: Operation,
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
        return batch_norm(op, x, weight, bias, mean, variance, False, *rest)
    return _normalised(op, x, range(2, x.c.ndim), rest[1])


def _normalised(
    op: Operation, x: Shadow, dims: Sequence[int], eps: float, shape: Sequence[int] | None = None
) -> Shadow:
    """Take mean and spread out along some axes: what is left is ratios."""
    alike(op, x, dims, "takes the mean and spread of")
    if x.scales.any():
        if eps:
            op.blame("scale", f"it adds the fixed number {eps:g} to the variance.", NO_EPSILON)
        op.suspect("scale", "it removes the scale of the image.", NO_EPSILON)
    slack = (x.slack + op.eps).reshape(tuple(shape or x.shape))
    return op.refreshed(Shadow(torch.zeros_like(slack), torch.zeros_like(slack), slack, slack))


@law("rms_norm", "_fused_rms_norm")
def rms_norm(op: Operation, x: Shadow, shape: Sequence[int], *rest: Any) -> Any:
    """Divide by the root mean square."""
    eps = next((r for r in rest if isinstance(r, float)), op.eps)
    differences = ignore_offset(op, x, "divides by the size of", WEIGHTED).still()
    axes = range(-len(shape), 0)
    normed = _normalised(op, differences, axes, eps)
    if len(op.shapes) == 1:
        return normed
    size = alike(op, differences, axes, "divides by the size of")
    return [normed, op.refreshed(_reciprocal(size), 1)]


@law("var", "std", "var_mean", "std_mean")
def spread(op: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Any:
    """Variance and standard deviation do not see a common offset."""
    dims = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else None)
    common = alike(op, x, _listed(dims, x.c.ndim), "takes the spread of")
    degree = 2.0 if op.name.startswith("var") else 1.0

    def shaped(plane: Tensor, index: int = 0) -> Tensor:
        return plane.reshape(tuple(op.shapes[index]))

    d = torch.where(common.d == ANY, ANY, common.d * degree)
    out = op.refreshed(replace(common.still(), d=d).map(shaped))
    if len(op.shapes) == 1:
        return out
    return [out, op.refreshed(common.map(lambda plane: shaped(plane, 1)), 1)]


@law("linalg_vector_norm", "norm", "frobenius_norm")
def vector_norm(
    op: Operation, x: Shadow, order: Any = 2, dim: Any = None, *_: Any, **__: Any
) -> Any:
    """Take a norm, which scales with its input (order 0 counts) and must not see the offset."""
    still = ignore_offset(op, x, "takes the norm of", WEIGHTED).still()
    common = alike(op, still, _listed(dim, x.c.ndim), "takes the norm of")
    if order == 0:
        common = replace(common, d=torch.zeros_like(common.d))
    return op.refreshed(common.map(lambda plane: plane.reshape(tuple(op.shapes[0]))))


@law("_euclidean_dist", "_cdist_forward", many=True)
def distances(op: Operation, a: Any, b: Any, order: float = 2.0, *_: Any) -> Any:
    """Distances between vectors do not see an offset that all of them share (order 0 counts)."""
    sides = [as_shadow(side).map(lambda plane: plane.reshape(-1)) for side in (a, b)]
    d, c, v, slack = (
        torch.cat([getattr(side, plane) for side in sides]) for plane in ("d", "c", "v", "slack")
    )
    common = alike(op, Shadow(d, c, v, slack), [0], "takes distances between").still()
    if order == 0:
        common = replace(common, d=torch.zeros_like(common.d))
    return op.refreshed(planes_like(common.map(lambda plane: plane.reshape(())), op.shapes[0]))


def _listed(dims: int | Sequence[int] | None, ndim: int) -> Sequence[int]:
    """List the axes that an argument stands for; none stands for all."""
    if isinstance(dims, int):
        return [dims]
    return dims or range(ndim)
