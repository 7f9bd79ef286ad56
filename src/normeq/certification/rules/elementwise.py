"""Laws of element-wise arithmetic, activations, comparisons and order statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, planes_like, shadows_in
from normeq.certification.rules.demands import SORT, agree, alike, ignore_gain, ignore_offset, merge
from normeq.certification.rules.linear import NO_BIAS, WEIGHTED
from normeq.certification.shadow import ANY, Shadow, Weights, lift, near

AFFINE_RESIDUAL = "an affine combination (normeq.nn.AffineResidual)"
ONE_DEGREE = "bring both to one degree before"
HOMOGENEOUS = "an activation that scales with its input (ReLU, LeakyReLU, SortPool)"
RATIOS = "feed it ratios (divide by a spread of the image before)"
NO_FIXED_NUMBER = (
    "no fixed number: it sets a scale (for 0/0, divide by infinity where the spread is 0)"
)


def _shadow(value: Any) -> Shadow:
    return value if isinstance(value, Shadow) else lift(value)


def _pair(a: Any, b: Any) -> tuple[Shadow, Shadow]:
    first, second = _shadow(a), _shadow(b)
    shape = torch.broadcast_shapes(first.shape, second.shape)
    return planes_like(first, shape), planes_like(second, shape)


@law("add", "sub", "rsub", many=True)
def add(step: Operation, a: Any, b: Any, *, alpha: float = 1) -> Shadow:
    """Coefficients add up; degrees must agree."""
    if step.operation == "rsub":
        a, b = b, a
    sign = alpha if step.operation == "add" else -alpha
    first, second = _pair(a, b)
    d, clash = agree(first.d, second.d)
    if clash.any():
        fixed = not (isinstance(a, Shadow) and isinstance(b, Shadow))
        if fixed:
            step.blame("scale", "it adds a fixed number.", NO_BIAS, suspects=False)
        else:
            step.blame("scale", "it adds features that scale differently.", ONE_DEGREE)
        d = second.d if not isinstance(a, Shadow) else first.d
        d = torch.where(clash & (first.d == 0), second.d, d)
    c = first.c + sign * second.c
    slack = first.slack.hypot(second.slack * sign).hypot(step.eps * c)
    both = isinstance(a, Shadow) and isinstance(b, Shadow)
    follow = near(first.c, 1.0, first.slack) & near(second.c, 1.0, second.slack)
    if both and sign > 0 and follow.any():
        step.suspect("shift", "it adds two features that both follow the offset.", AFFINE_RESIDUAL)
    return Shadow(d, c, slack)


@law("lerp", many=True)
def lerp(step: Operation, a: Any, b: Any, weight: Any) -> Shadow:
    """``(1 - t)·a + t·b``."""
    first, second = _pair(a, b)
    if isinstance(weight, Shadow):
        ignore_gain(step, weight, "interpolates by", RATIOS)
        ignore_offset(step, weight, "interpolates by", RATIOS)
        return merge(step, (first, second), "interpolates between")
    t = torch.as_tensor(weight, dtype=torch.float64)
    d, clash = agree(first.d, second.d)
    if clash.any():
        step.blame("scale", "it adds features that scale differently.", ONE_DEGREE)
    c = torch.lerp(first.c, second.c, t)
    slack = (first.slack * (1 - t)).hypot(second.slack * t).hypot(step.eps * c)
    return Shadow(d, c, slack)


@law("mul", "div", "true_divide", many=True)
def multiply(step: Operation, a: Any, b: Any, *, rounding_mode: str | None = None) -> Shadow:
    """Known factors scale the coefficient; between features degrees add up, without offset."""
    if rounding_mode is not None:
        bent: Shadow = curve(step, a, b)
        return bent
    dividing = step.operation != "mul"
    if not isinstance(b, Shadow):
        factor = torch.as_tensor(b, dtype=torch.float64)
        return _scaled(step, a, 1 / factor if dividing else factor)
    if not isinstance(a, Shadow) and not dividing:
        return _scaled(step, b, torch.as_tensor(a, dtype=torch.float64))
    if not dividing and (a.moves.any() or b.moves.any()):
        for weights, values in ((a, b), (b, a)):
            if weights.weights and not weights.weights.debt and not weights.moves.any():
                return _weighted(step, weights, values)
    first, second = _pair(a, b)
    first = ignore_offset(step, first, "divides" if dividing else "multiplies", WEIGHTED)
    second = ignore_offset(step, second, "divides by" if dividing else "multiplies", WEIGHTED)
    # Zero times anything is zero, and anything divided by infinity: of any degree.
    d = first.d - second.d if dividing else first.d + second.d
    d = torch.where(d.isfinite(), d, ANY)
    c = torch.maximum(first.c, second.c) * ((first.c == 0) | (second.c == 0))
    return Shadow(d, c, first.slack + second.slack + step.eps)


def _weighted(step: Operation, weights: Shadow, values: Shadow) -> Shadow:
    """Multiply by weights that add up to one, in the expectation of a sum."""
    marks = weights.weights
    assert marks is not None
    factor, value = _pair(weights, values)
    debt = step.owe("it multiplies features that move with the offset.", WEIGHTED)
    expected = Weights(
        marks.group.broadcast_to(value.shape),
        marks.member.broadcast_to(value.shape),
        marks.size,
        debt,
    )
    slack = factor.slack + value.slack + step.eps
    return Shadow(factor.d + value.d, value.c, slack, expected)


def _scaled(step: Operation, x: Shadow, factor: Tensor) -> Shadow:
    d, factors = torch.broadcast_tensors(x.d, factor)
    c = x.c * factor
    slack = (x.slack * factor).hypot(step.eps * c)
    if (c == 0).logical_and(x.c != 0).any():  # zero times something is zero, of any degree
        d = torch.where(factors == 0, ANY, d)
    return Shadow(d, c, slack)


@law("neg")
def negate(step: Operation, x: Shadow) -> Shadow:
    """Change the coefficient's sign; weights that added up to one do so no longer."""
    return Shadow(x.d, -x.c, x.slack)


@law("relu", "relu_", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "threshold",
     "maximum", "minimum", "fmax", "fmin", many=True)  # fmt: skip
def order(step: Operation, *args: Any, **kwargs: Any) -> Shadow:
    """Take the larger or smaller of things that share one law; ReLU compares with 0."""
    limits = {
        "relu": [0.0],
        "relu6": [0.0, 6.0],
        "hardtanh": [-1.0, 1.0],
        "threshold": [*args[1:]],
    }.get(step.operation, [*args[1:], *kwargs.values()])
    if step.operation == "hardtanh" and len(args) == 3:
        limits = [*args[1:]]
    given = [limit for limit in limits if limit is not None]
    if any(isinstance(limit, Shadow) for limit in given) or not isinstance(args[0], Shadow):
        return merge(step, [_shadow(value) for value in (args[0], *given)], "takes the larger of")
    does = "compares, with a fixed number,"
    fixed = any(bool((lift(limit).d == 0).any()) for limit in given)
    compared = ignore_gain(step, args[0], does, NO_FIXED_NUMBER) if fixed else args[0]
    return ignore_offset(step, compared, does, NO_FIXED_NUMBER if fixed else SORT)


@law("abs", "leaky_relu", "prelu", "_prelu_kernel", "rrelu", "rrelu_with_noise")
def kink(step: Operation, x: Shadow, *_: Any) -> Shadow:
    """Another slope for negative values: fine where the offset does not matter."""
    return ignore_offset(step, x, "treats negative values otherwise, in", SORT)


@law("sign", "sgn")
def sign(step: Operation, x: Shadow) -> Shadow:
    """Take the sign, which is free of scale."""
    out = ignore_offset(step, x, "takes the sign of", SORT)
    return replace(out, d=torch.zeros_like(out.d))


_POWERS = {"square": 2.0, "sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1.0}


@law("square", "sqrt", "rsqrt", "reciprocal", "pow", many=True)
def power(step: Operation, x: Any, exponent: Any = None) -> Shadow:
    """Powers multiply the degree, where the offset does not matter."""
    number = _POWERS.get(step.operation, exponent)
    if not (isinstance(x, Shadow) and isinstance(number, int | float) and math.isfinite(number)):
        bent: Shadow = curve(step, x, exponent)
        return bent
    out = ignore_offset(step, x, "raises to a power", WEIGHTED)
    d = torch.where(out.d == ANY, ANY, out.d * number) if number else torch.zeros_like(out.d)
    return replace(out, d=d)  # 0**0 = 1 does not scale


#: Curves that are used as activations; the others squash into weights without a scale.
_ACTIVATIONS = {"gelu", "silu", "elu", "celu", "selu", "softplus", "mish", "hardswish", "tanh",
                "softshrink", "hardshrink", "round", "floor", "ceil", "trunc"}  # fmt: skip


@law(*sorted(_ACTIVATIONS), "sigmoid", "hardsigmoid", "exp", "exp2", "expm1", "log", "log1p",
     "log2", "log10", "log_sigmoid", "sin", "cos", "tan", "atan", "asin", "acos", "sinh", "cosh",
     "erf", "erfc", "atan2", "remainder", "fmod", "logit", many=True)  # fmt: skip
def curve(step: Operation, *args: Any, **kwargs: Any) -> Shadow:
    """Apply a curve that has a scale of its own: lawful only for ratios."""
    activation = step.operation in _ACTIVATIONS
    slack = step.eps
    for shadow in shadows_in([args, kwargs]):
        ratios = ignore_gain(step, shadow, "bends", HOMOGENEOUS if activation else RATIOS)
        out = ignore_offset(step, ratios, "bends", SORT if activation else RATIOS)
        slack += float(out.slack.max())
    if activation:
        return out
    return replace(step.output(0.0, 0.0), slack=torch.full(tuple(step.shapes[0]), slack).double())


@law("eq", "ne", "lt", "le", "gt", "ge", many=True)
def compare(step: Operation, a: Any, b: Any, *_: Any, **__: Any) -> Shadow:
    """Compare two things of one law, which neither gain nor offset changes."""
    merged = merge(step, _pair(a, b), "compares", "compare things of one kind")
    return Shadow(torch.zeros_like(merged.d), torch.zeros_like(merged.c), merged.slack)


@law("masked_fill", "where", many=True)
def choose(step: Operation, *args: Any) -> Shadow:
    """Choose between things of one law, by what neither gain nor offset changes."""
    if step.operation == "masked_fill":
        otherwise, condition, chosen = args
    else:
        condition, chosen, otherwise = args
    a, b = _pair(chosen, otherwise)
    if not isinstance(condition, Shadow):  # fixed positions: each element has one origin
        fixed = condition.bool()
        return Shadow(
            torch.where(fixed, a.d, b.d),
            torch.where(fixed, a.c, b.c),
            torch.where(fixed, a.slack, b.slack),
        )
    ignore_gain(step, condition, "chooses by", "compare things of one kind")
    ignore_offset(step, condition, "chooses by", "compare things of one kind")
    whole = planes_like(a, torch.broadcast_shapes(condition.shape, a.shape))
    return merge(step, (whole, b), "chooses between", NO_FIXED_NUMBER)


@law("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
     "max_pool2d_with_indices", "max_pool3d_with_indices")  # fmt: skip
def max_pool(step: Operation, x: Shadow, *args: Any) -> Any:
    """Take the largest of a window, which must share one law."""

    def pool(plane: Tensor) -> Tensor:
        result = step.run(plane, *args)
        return result if isinstance(result, Tensor) else result[0]

    return _with_indices(step, _windowed(step, x, pool))


def _windowed(step: Operation, x: Shadow, pool: Callable[[Tensor], Tensor]) -> Shadow:
    low = Shadow(-pool(-x.d), -pool(-x.c), pool(x.slack))
    known = torch.where(x.d == ANY, -torch.inf, x.d)
    highest = pool(known)
    high = Shadow(torch.where(highest == -torch.inf, ANY, highest), pool(x.c), low.slack)
    return merge(step, (low, high), "takes the largest of")


def _with_indices(step: Operation, values: Shadow) -> Any:
    """Add the outputs that tell positions, which neither gain nor offset changes."""
    if len(step.shapes) == 1:
        return values
    return [values, *(step.output(0.0, 0.0, index) for index in range(1, len(step.shapes)))]


@law("max", "min", "amax", "amin", "median", "nanmedian", "sort", "kthvalue", "topk", "cummax",
     "cummin", "argmax", "argmin", "argsort", "aminmax", "quantile", many=True)  # fmt: skip
def statistic(step: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Any:
    """Order statistics along an axis, whose elements must share one law."""
    others = [arg for arg in args if isinstance(arg, Shadow | Tensor)]
    if step.operation in ("max", "min") and others:  # max(a, b), element by element
        return order(step, x, *args)
    dims = _axes(step.operation, x.c.ndim, args, kwargs)
    values = alike(step, x, dims, "orders")
    spread = values.map(lambda plane: plane.expand(x.shape))
    outputs = []
    for index, shape in enumerate(step.shapes):
        if step.operation.startswith("arg") or (index and step.operation != "aminmax"):
            outputs.append(step.output(0.0, 0.0, index))
        else:
            outputs.append(_reduced(spread, dims, shape))
    return outputs if len(outputs) > 1 else outputs[0]


def _axes(operation: str, ndim: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """Read the axes that an order statistic runs over from its arguments."""
    position = 1 if operation in ("kthvalue", "topk", "quantile") else 0
    default = -1 if operation in ("sort", "argsort", "kthvalue", "topk") else None
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
