"""Laws of comparisons, choices and order statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, planes_like
from normeq.certification.rules.demands import SORT, alike, ignore_gain, ignore_offset, merge
from normeq.certification.rules.products import as_pair, as_shadow
from normeq.certification.shadow import ANY, Shadow, lift, scrambled

NO_FIXED_NUMBER = (
    "no fixed number: it sets a scale (for 0/0, divide by infinity where the spread is 0)"
)
ONE_KIND = "compare things of one kind"


@law("relu", "relu_", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "threshold",
     "maximum", "minimum", "fmax", "fmin", many=True)  # fmt: skip
def limit(op: Operation, *args: Any, **kwargs: Any) -> Shadow:
    """Take the larger or smaller of things that share one law; ReLU compares with 0."""
    given = [value for value in _limits(op.name, args, kwargs) if value is not None]
    if any(isinstance(value, Shadow) for value in given) or not isinstance(args[0], Shadow):
        return merge(op, [as_shadow(value) for value in (args[0], *given)], "takes the larger of")
    does = "compares, with a fixed number,"
    fixed = any(bool((lift(value).d == 0).any()) for value in given)
    compared = ignore_gain(op, args[0], does, NO_FIXED_NUMBER) if fixed else args[0]
    out = ignore_offset(op, compared, does, NO_FIXED_NUMBER if fixed else SORT)
    return out.with_values(scrambled(f"{op.name}{given}", out.v))


def _limits(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """List what the first argument is compared with."""
    built_in: dict[str, list[Any]] = {"relu": [0.0], "relu_": [0.0], "relu6": [0.0, 6.0]}
    if name == "hardtanh" and len(args) == 1 and not kwargs:
        return [-1.0, 1.0]
    return built_in.get(name, [*args[1:], *kwargs.values()])


@law("eq", "ne", "lt", "le", "gt", "ge", many=True)
def compare(op: Operation, a: Any, b: Any, *_: Any, **__: Any) -> Shadow:
    """Compare two things of one law, which neither gain nor offset changes."""
    merged = merge(op, as_pair(a, b), "compares", ONE_KIND)
    zero = torch.zeros_like(merged.slack)
    return Shadow(zero, zero, merged.v, merged.slack)


@law("logical_not", "logical_and", "logical_or", "logical_xor", "bitwise_not", "bitwise_and",
     "bitwise_or", "bitwise_xor", "any", "all", many=True)  # fmt: skip
def combine_truths(op: Operation, *args: Any, **kwargs: Any) -> Shadow:
    """Combine what neither gain nor offset changes; zero or not is such a thing without offset."""
    for value in args:
        if isinstance(value, Shadow):
            ignore_offset(op, value, "tells zero from", ONE_KIND)
    return op.output(0.0, 0.0)


@law("masked_fill", "where", many=True)
def choose(op: Operation, *args: Any) -> Shadow:
    """Choose between things of one law, by what neither gain nor offset changes."""
    if op.name == "masked_fill":
        otherwise, condition, chosen = args
    else:
        condition, chosen, otherwise = args
    a, b = as_pair(chosen, otherwise)
    if not isinstance(condition, Shadow):  # fixed positions: each element has one origin
        fixed = condition.bool()
        return Shadow(
            torch.where(fixed, a.d, b.d),
            torch.where(fixed, a.c, b.c),
            torch.where(fixed, a.v, b.v),
            torch.where(fixed, a.slack, b.slack),
        )
    ignore_gain(op, condition, "chooses by", ONE_KIND)
    ignore_offset(op, condition, "chooses by", ONE_KIND)
    whole = planes_like(a, torch.broadcast_shapes(condition.shape, a.shape))
    return merge(op, (whole, b), "chooses between", NO_FIXED_NUMBER)


@law("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
     "adaptive_max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")  # fmt: skip
def max_pool(op: Operation, x: Shadow, *args: Any) -> Any:
    """Take the largest of a window, which must share one law."""

    def pool(plane: Tensor) -> Tensor:
        result = op.run(plane, *args)
        return result if isinstance(result, Tensor) else result[0]

    return _with_positions(op, _windowed(op, x, pool))


def _windowed(op: Operation, x: Shadow, pool: Callable[[Tensor], Tensor]) -> Shadow:
    slack = pool(x.slack)
    low = Shadow(-pool(-x.d), -pool(-x.c), slack, slack)
    highest = pool(torch.where(x.d == ANY, -torch.inf, x.d))
    high = Shadow(torch.where(highest == -torch.inf, ANY, highest), pool(x.c), slack, slack)
    return merge(op, (low, high), "takes the largest of")


def _with_positions(op: Operation, values: Shadow) -> Any:
    """Add the outputs that tell positions, which neither gain nor offset changes."""
    if len(op.shapes) == 1:
        return values
    return [values, *(op.output(0.0, 0.0, index) for index in range(1, len(op.shapes)))]


@law("max", "min", "amax", "amin", "median", "nanmedian", "sort", "kthvalue", "topk", "cummax",
     "cummin", "argmax", "argmin", "argsort", "aminmax", "quantile", "mode", many=True)  # fmt: skip
def statistic(op: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Any:
    """Order statistics along an axis, whose elements must share one law."""
    others = [arg for arg in args if isinstance(arg, Shadow | Tensor)]
    if op.name in ("max", "min") and others:  # max(a, b), element by element
        return limit(op, x, *args)
    dims = _axes(op.name, x.c.ndim, args, kwargs)
    common = alike(op, x, dims, "orders")
    spread = common.map(lambda plane: plane.expand(x.shape))
    outputs = []
    for index, shape in enumerate(op.shapes):
        if op.name.startswith("arg") or (index and op.name != "aminmax"):
            outputs.append(op.output(0.0, 0.0, index))
        else:
            outputs.append(op.refreshed(_reduced(spread, dims, shape), index))
    return outputs if len(outputs) > 1 else outputs[0]


def _axes(name: str, ndim: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """Read the axes that an order statistic runs over from its arguments."""
    position = 1 if name in ("kthvalue", "topk", "quantile") else 0
    default = -1 if name in ("sort", "argsort", "kthvalue", "topk", "mode") else None
    dim = kwargs.get("dim", args[position] if len(args) > position else default)
    if dim is None or dim == []:
        return list(range(ndim))
    return list(dim) if isinstance(dim, list | tuple) else [dim]


def _reduced(full: Shadow, dims: list[int], shape: Any) -> Shadow:
    """Cut a shadow that is alike along `dims` to the shape of a statistic over them."""

    def cut(plane: Tensor) -> Tensor:
        for dim in dims if plane.ndim else ():
            plane = plane.narrow(dim, 0, 1)
        kept = len(dims) == 1 and len(shape) == plane.ndim
        return plane.expand(tuple(shape)) if kept else plane.reshape(tuple(shape))

    return full.map(cut)
