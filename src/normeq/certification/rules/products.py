"""Laws of products and quotients of features, which multiply coefficients by values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, planes_like
from normeq.certification.rules.demands import alike, ignore_offset, merge
from normeq.certification.shadow import ANY, Shadow, lift, scrambled, span

WEIGHTED = (
    "differences as factors, or weights that neither gain nor offset changes and that add up to "
    "one (normeq.nn.EquivariantAttention)"
)
UNIT_GAIN = "no such factor, or factors that add up to one (normeq.nn.AffineResidual)"


def as_shadow(value: Any) -> Shadow:
    """Return a shadow as it is, and a constant lifted to one."""
    return value if isinstance(value, Shadow) else lift(value)


def as_pair(a: Any, b: Any) -> tuple[Shadow, Shadow]:
    """Return two arguments as shadows of one shape."""
    first, second = as_shadow(a), as_shadow(b)
    shape = torch.broadcast_shapes(first.shape, second.shape)
    return planes_like(first, shape), planes_like(second, shape)


def product_of(op: Operation, a: Any, b: Any) -> Shadow:
    """Multiply element by element: ``(a + α·μ)(b + β·μ)`` is lawful where α or β is zero."""
    first, second = as_pair(a, b)
    both = first.moves & second.moves
    if both.any():
        _blame_two_movers(op, torch.stack((first.c[both], second.c[both])))
        first, second = first.still(), second.still()
    elif isinstance(a, Shadow) and isinstance(b, Shadow):
        _suspect_weights(op, first, second)
    # Zero times anything is zero, of any degree.
    d = first.d + second.d
    d = torch.where(d.isfinite(), d, ANY)
    c = first.c * second.v + second.c * first.v
    slack = (first.slack * second.v.abs()).hypot(second.slack * first.v.abs())
    return Shadow(d, c, first.v * second.v, slack.hypot(op.eps * c.abs()))


def quotient_of(op: Operation, a: Any, b: Any) -> Shadow:
    """Divide element by element: the divisor must ignore the offset."""
    first, divisor = as_pair(a, b)
    divisor = ignore_offset(op, divisor, "divides by", WEIGHTED).still()
    if isinstance(b, Shadow) and isinstance(a, Shadow):
        _suspect_weights(op, first, divisor)
    # Zero divided by anything, and anything divided by infinity, is zero, of any degree.
    d = first.d - divisor.d
    d = torch.where(d.isfinite(), d, ANY)
    by = torch.where(divisor.v == 0, 1.0, divisor.v)
    c = first.c / by
    slack = (first.slack / by.abs()).hypot(op.eps * c.abs())
    if not c.any():
        slack = slack + divisor.slack
    return Shadow(d, c, first.v / by, slack)


def bilinear(op: Operation, a: Any, b: Any, apply: Callable[[Tensor, Tensor], Tensor]) -> Shadow:
    """Sum products of two tensors that both depend on the image (matrices, dynamic kernels)."""
    a, b = as_shadow(a), as_shadow(b)
    moving = apply(a.moves.double(), b.moves.double()) if a.moves.any() and b.moves.any() else None
    if moving is not None and moving.any():
        _blame_two_movers(op, torch.cat((a.c[a.moves], b.c[b.moves])))
        a, b = a.still(), b.still()
    else:
        _suspect_weights(op, a, b)
    left, right = (
        alike(op, factor.still(), range(factor.c.ndim), "sums products of") for factor in (a, b)
    )
    degree = float(left.d.reshape(-1)[0]) + float(right.d.reshape(-1)[0])
    c = apply(a.c, b.v) + apply(a.v, b.c)
    slack = apply(a.slack, b.v.abs()) + apply(a.v.abs(), b.slack) + op.eps * c.abs()
    d = torch.full_like(slack, degree if abs(degree) < ANY else ANY)
    return Shadow(d, c, apply(a.v, b.v), slack)


def _blame_two_movers(op: Operation, coefficients: Tensor) -> None:
    op.blame(
        "shift",
        "it multiplies features that both move with the offset "
        f"(coefficients {span(coefficients)}).",
        WEIGHTED,
    )


def _suspect_weights(op: Operation, a: Shadow, b: Shadow) -> None:
    """Remember a factor that the image determines: lawful if such factors add up to one."""
    if a.moves.any() or b.moves.any():
        op.suspect(
            "shift",
            "it multiplies or divides features that move with the offset by others.",
            WEIGHTED,
        )


def _suspect_gain(op: Operation, a: Any, b: Any) -> None:
    """Remember a fixed factor of features that follow the offset: lawful if all add up to one."""
    features, number = (a, b) if isinstance(a, Shadow) else (b, a)
    if isinstance(number, Shadow) or not features.moves.any():
        return
    factors = lift(number).v
    if (factors != 1).any():
        does = "multiplies" if op.name == "mul" else "divides"
        op.suspect("shift", f"it {does} by {span(factors)}, not by one.", UNIT_GAIN)


@law("mul", many=True)
def multiply(op: Operation, a: Any, b: Any) -> Shadow:
    """Known factors scale the coefficient; between features degrees add up."""
    _suspect_gain(op, a, b)
    return product_of(op, a, b)


@law("div", "true_divide", many=True)
def divide(op: Operation, a: Any, b: Any, *, rounding_mode: str | None = None) -> Shadow:
    """Degrees subtract; what is rounded is a curve of the quotient."""
    _suspect_gain(op, a, b)
    quotient = quotient_of(op, a, b)
    if rounding_mode is None:
        return quotient
    from normeq.certification.rules.elementwise import curve

    rounded: Shadow = curve(op, quotient)
    return rounded


@law("hypot", many=True)
def hypotenuse(op: Operation, a: Any, b: Any) -> Shadow:
    """``√(a² + b²)`` scales as both do, without offset."""
    first, second = (
        ignore_offset(op, shadow, "takes the norm of", WEIGHTED).still() for shadow in as_pair(a, b)
    )
    joined = merge(op, (first, second), "takes the norm of", WEIGHTED)
    return joined.with_values(scrambled("hypot", first.v, second.v))
