"""Laws of sums, activations and other curves, element by element."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from normeq.certification.operation import Operation, law, shadows_in
from normeq.certification.rules.demands import SORT, agree, ignore_gain, ignore_offset
from normeq.certification.rules.linear import NO_BIAS
from normeq.certification.rules.products import WEIGHTED, as_pair, product_of
from normeq.certification.shadow import ANY, Shadow, near, scrambled

AFFINE_RESIDUAL = "an affine combination (normeq.nn.AffineResidual)"
ONE_DEGREE = "bring both to one degree before"
HOMOGENEOUS = "an activation that scales with its input (ReLU, LeakyReLU, SortPool)"
RATIOS = "feed it ratios (divide by a spread of the image before)"


@law("add", "sub", "rsub", many=True)
def add(op: Operation, a: Any, b: Any, *, alpha: float = 1) -> Shadow:
    """Coefficients add up; degrees must agree."""
    if op.name == "rsub":
        a, b = b, a
    return sum_of(op, a, b, alpha if op.name == "add" else -alpha)


def sum_of(op: Operation, a: Any, b: Any, factor: float) -> Shadow:
    """Return the shadow of ``a + factor·b``."""
    first, second = as_pair(a, b)
    both = isinstance(a, Shadow) and isinstance(b, Shadow)
    d, clash = agree(first.d, second.d)
    if clash.any():
        if both:
            op.blame("scale", "it adds features that scale differently.", ONE_DEGREE)
        else:
            op.blame("scale", "it adds a fixed number.", NO_BIAS, suspects=False)
        d = first.d if isinstance(a, Shadow) else second.d
        d = torch.where(clash & (first.d == 0), second.d, d)
    c = first.c + factor * second.c
    slack = first.slack.hypot(second.slack * factor).hypot(op.eps * c.abs())
    follow = near(first.c, 1.0, first.slack) & near(second.c, 1.0, second.slack)
    if both and factor > 0 and follow.any():
        op.suspect("shift", "it adds two features that both follow the offset.", AFFINE_RESIDUAL)
    return Shadow(d, c, first.v + factor * second.v, slack)


@law("lerp", many=True)
def interpolate(op: Operation, a: Any, b: Any, weight: Any) -> Shadow:
    """Judge ``a + t·(b - a)`` operation by operation."""
    if isinstance(weight, Shadow):
        weight = ignore_gain(op, weight, "interpolates by", RATIOS)
    first, second = as_pair(a, b)
    part = product_of(op, weight, sum_of(op, second, first, -1.0))
    return sum_of(op, first, part, 1.0)


@law("neg")
def negate(op: Operation, x: Shadow) -> Shadow:
    """Change the signs."""
    return replace(x, c=-x.c, v=-x.v)


@law("abs", "leaky_relu", "prelu", "_prelu_kernel", "rrelu", "rrelu_with_noise")
def kink(op: Operation, x: Shadow, *options: Any) -> Shadow:
    """Another slope for negative values: fine where the offset does not matter."""
    out = ignore_offset(op, x, "has another slope for negative values of", SORT)
    return out.with_values(scrambled(op.name, x.v, *_numbers(options)))


def _numbers(options: Any) -> list[float]:
    return [float(option) for option in options if isinstance(option, int | float)]


@law("sign", "sgn")
def sign(op: Operation, x: Shadow) -> Shadow:
    """Take the sign, which is free of scale."""
    out = ignore_offset(op, x, "takes the sign of", SORT)
    return replace(out, d=torch.zeros_like(out.d), v=scrambled("sign", x.v))


_POWERS = {"square": 2.0, "sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1.0}


@law("square", "sqrt", "rsqrt", "reciprocal", "pow", many=True)
def power(op: Operation, x: Any, exponent: Any = None) -> Shadow:
    """Powers multiply the degree, where the offset does not matter."""
    number = _POWERS.get(op.name, exponent)
    if not (isinstance(x, Shadow) and isinstance(number, int | float) and math.isfinite(number)):
        bent: Shadow = curve(op, x, exponent)
        return bent
    out = ignore_offset(op, x, "raises to a power", WEIGHTED)
    d = torch.where(out.d == ANY, ANY, out.d * number) if number else torch.zeros_like(out.d)
    base = x.v if float(number).is_integer() else x.v.abs()
    return replace(out, d=d, v=base**number)  # 0**0 = 1 does not scale


#: Curves that are used as activations; the others squash into weights without a scale.
_ACTIVATIONS = {"gelu", "silu", "elu", "celu", "selu", "softplus", "mish", "hardswish", "tanh",
                "softshrink", "hardshrink", "round", "floor", "ceil", "trunc"}  # fmt: skip


@law(*sorted(_ACTIVATIONS), "sigmoid", "hardsigmoid", "exp", "exp2", "expm1", "log", "log1p",
     "log2", "log10", "log_sigmoid", "log_sigmoid_forward", "sin", "cos", "tan", "atan", "asin",
     "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "remainder",
     "fmod", "logit", "isnan", "isinf", "isfinite", many=True)  # fmt: skip
def curve(op: Operation, *args: Any, **kwargs: Any) -> Any:
    """Apply a curve that has a scale of its own: lawful only for ratios."""
    activation = op.name in _ACTIVATIONS
    slack = op.eps
    for shadow in shadows_in([args, kwargs]):
        ratios = ignore_gain(op, shadow, "bends", HOMOGENEOUS if activation else RATIOS)
        out = ignore_offset(op, ratios, "bends", SORT if activation else RATIOS)
        slack += float(out.slack.max())
    shadows = list(shadows_in([args, kwargs]))
    elementwise = len(shadows) == 1 and tuple(shadows[0].shape) == tuple(op.shapes[0])
    result = op.output(0.0, 0.0)
    result = replace(result, slack=torch.full_like(result.c, slack))
    if elementwise:  # the same input gives the same output
        values = scrambled(op.name, shadows[0].v, *_numbers(args[1:]))
        result = (out if activation else result).with_values(values)
    further = [op.output(0.0, 0.0, index) for index in range(1, len(op.shapes))]
    return [result, *further] if further else result


@law("atan2", many=True)
def angle(op: Operation, a: Any, b: Any) -> Shadow:
    """Take an angle, free of scale where both sides scale alike, without offset."""
    first, second = as_pair(a, b)
    _, clash = agree(first.d, second.d)
    if clash.any():
        op.blame("scale", "it takes the angle of features that scale differently.", ONE_DEGREE)
    for shadow in (first, second):
        ignore_offset(op, shadow, "takes the angle of", WEIGHTED)
    out = op.output(0.0, 0.0)
    return replace(out, v=scrambled("atan2", first.v, second.v), slack=first.slack + second.slack)
