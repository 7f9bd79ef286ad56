"""Laws of linear maps: degrees are kept, and coefficients go through the map itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law
from normeq.certification.rules.demands import agree
from normeq.certification.rules.movement import COPY_PADDING, replicate
from normeq.certification.rules.products import bilinear
from normeq.certification.shadow import ANY, Shadow, clean, distinct, lift, near, span

#: Applies a linear map with the given weights to a plane.
Map = Callable[[Tensor, Tensor], Tensor]

NO_BIAS = "no bias (bias=False)"
AFFINE = (
    "kernels that sum to one (normeq.nn.constrain, AffineConv2d, AffineLinear), "
    "or to zero (ZeroSumConv2d)"
)


def linear_map(
    op: Operation,
    x: Shadow,
    weight: Tensor,
    apply: Map,
    inside: Callable[[Tensor], Tensor] | None = None,
) -> Shadow:
    """Send a shadow through a linear map with known weights.

    What the kernels sum to is told `inside` the image, if the map pads it.
    Rounding adds up as independent errors do, through the squared kernel.
    """
    c = apply(x.c, weight) if x.c.any() else torch.zeros(tuple(op.shapes[0]), dtype=torch.float64)
    # An estimate needs no double precision, which is slow.
    slack, rough = x.slack.float(), weight.float()
    squares = slack.square() + op.eps**2 * x.c.float().square()
    if squares.any():
        rounding = apply(squares, rough.square()).clamp(min=0).sqrt().double()
    else:
        rounding = torch.zeros_like(c)
    d = mixed_degrees(op, x.d, lambda plane: apply(plane, weight.abs()))
    out = Shadow(d, c, apply(x.v, weight), rounding)
    if inside is None:
        _suspect_kernel_sums(op, x, out, lambda plane: apply(plane, weight))
    elif x.moves.any():
        _suspect_kernel_sums(op, x, replace(out, c=inside(x.c)), inside)
    return out


def averaging(op: Operation, x: Shadow, apply: Callable[[Tensor], Tensor]) -> Shadow:
    """Send a shadow through a linear map whose weights are built in (means, interpolation)."""
    c = apply(x.c)
    slack = apply(x.slack).abs() + op.eps * c.abs()
    out = Shadow(mixed_degrees(op, x.d, apply), c, apply(x.v), slack)
    _suspect_kernel_sums(op, x, out, apply)
    return out


def mixed_degrees(op: Operation, d: Tensor, reach: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the one degree that each output sees; `reach` maps what each output is made of."""
    present = distinct(d)
    out = torch.full(tuple(op.shapes[0]), ANY, dtype=torch.float64)
    if len(present) == 1 and not (d == ANY).any():
        return out.fill_(present[0])
    clash = torch.zeros_like(out, dtype=torch.bool)
    for degree in present:
        seen = reach((d == degree).to(d.dtype)) != 0
        clash |= seen & (out != ANY)
        out = torch.where(seen & (out == ANY), degree, out)
    if clash.any():
        degrees = " and ".join(f"{degree:g}" for degree in present)
        op.blame(
            "scale",
            f"it mixes features of degrees {degrees}.",
            "bring them to one degree before (divide or multiply by a spread of the image)",
        )
    return out


def _suspect_kernel_sums(
    op: Operation, x: Shadow, out: Shadow, apply: Callable[[Tensor], Tensor]
) -> None:
    """Remember a map that would turn features that follow the offset into something else."""
    if not x.moves.any():
        return
    moves = x.moves.to(torch.float64)
    # Where everything follows exactly, that has been computed already.
    exact = out if torch.equal(moves, x.c) else replace(out, c=apply(moves))
    if not clean(exact):
        op.suspect("shift", f"its kernels sum to {span(exact.c)}, not to one.", AFFINE)


def add_bias(op: Operation, out: Shadow, bias: Any, axis: int = -1) -> Shadow:
    """Add a bias along an axis: it breaks scale unless it is zero."""
    if bias is None:
        return out
    if isinstance(bias, Shadow):
        for which in ("scale", "shift"):
            op.blame(which, "its bias depends on the image.", "a plain layer", unknown=True)
        return out
    constant = lift(bias)
    if axis != -1:
        trailing = [1] * (out.c.ndim - 1 - axis)
        constant = constant.map(lambda plane: plane.reshape(-1, *trailing))
    d, clash = agree(out.d, constant.d.expand(out.shape))
    if clash.any():
        op.blame("scale", "it adds a bias, which stays when the image is scaled.", NO_BIAS)
        d = out.d
    return replace(out, d=d, v=out.v + constant.v)


@law("conv1d", "conv2d", "conv3d", many=True)
def convolution(
    op: Operation,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] | str = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Shadow:
    """Coefficients are the sums of the kernels, except where zeros have been padded."""
    ndim = len(op.shapes[0]) - 2
    stride, dilation = _each(stride, ndim), _each(dilation, ndim)
    padding = padding if isinstance(padding, str) else _each(padding, ndim)
    pads = _amounts(padding, weight.shape[2:], dilation)

    def apply(plane: Tensor, kernel: Tensor) -> Tensor:
        if not any(pads) and (plane == plane[_first(ndim)]).all():  # one place tells them all
            reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel.shape[2:], strict=True)]
            plane = plane[_first(ndim)].expand(*plane.shape[:-ndim], *reach)
        result: Tensor = op.run(plane, kernel, None, stride, padding, dilation, groups)
        return result.expand(tuple(op.shapes[0]))

    if isinstance(weight, Shadow):
        return add_bias(op, bilinear(op, x, weight, apply), bias, 1)
    unpadded: Any = "valid" if isinstance(padding, str) else [0] * ndim

    def inside(plane: Tensor) -> Tensor:
        result: Tensor = op.run(
            replicate(plane, pads), weight, None, stride, unpadded, dilation, groups
        )
        return result

    out = linear_map(op, x, weight, apply, inside if any(pads) else None)
    if any(pads) and x.c.any():
        copied = inside(x.c)
        if not near(out.c, copied, out.slack).all():
            op.blame(
                "shift",
                "it pads with zeros, which stay when the image is offset.",
                COPY_PADDING,
                suspects=False,
            )
            out = replace(out, c=copied)
    return add_bias(op, out, bias, 1)


def _first(ndim: int) -> tuple[Any, ...]:
    """Return the index of the first place on each of the last axes."""
    return (..., *[slice(0, 1)] * ndim)


def _each(numbers: Sequence[int], ndim: int) -> list[int]:
    """Repeat a number that stands for every axis."""
    return list(numbers) * ndim if len(numbers) == 1 else list(numbers)


def _amounts(
    padding: Sequence[int] | str, kernel: Sequence[int], dilation: Sequence[int]
) -> list[int]:
    """Amounts of padding before and after each axis, last axis first."""
    if padding == "valid":
        return []
    if padding == "same":
        totals = [spacing * (size - 1) for spacing, size in zip(dilation, kernel, strict=True)]
        pairs = [(total // 2, total - total // 2) for total in totals]
    else:
        pairs = [(int(p), int(p)) for p in padding]
    return [amount for pair in reversed(pairs) for amount in pair]


@law("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", many=True)
def transposed_convolution(op: Operation, x: Any, weight: Any, bias: Any = None, *rest: Any) -> Any:
    """Coefficients are the sums of the kernels' phases."""

    def apply(plane: Tensor, kernel: Tensor) -> Tensor:
        result: Tensor = op.run(plane, kernel, None, *rest)
        return result

    through = bilinear if isinstance(weight, Shadow) else linear_map
    return add_bias(op, through(op, x, weight, apply), bias, 1)


@law("linear", many=True)
def dense(op: Operation, x: Any, weight: Any, bias: Any = None) -> Shadow:
    """Coefficients are the sums of the rows."""
    through = bilinear if isinstance(weight, Shadow) else linear_map
    return add_bias(op, through(op, x, weight, lambda p, w: op.run(p, w)), bias)


@law("mm", "bmm", "matmul", "mv", "dot", many=True)
def product(op: Operation, a: Any, b: Any) -> Shadow:
    """Multiply matrices: linear if one side is known, bilinear if both depend on the image."""
    if not isinstance(b, Shadow):
        return linear_map(op, a, b, lambda p, w: op.run(p, w))
    if not isinstance(a, Shadow):
        return linear_map(op, b, a, lambda p, w: op.run(w, p))
    return bilinear(op, a, b, lambda p, q: op.run(p, q))


@law("addmm", "baddbmm", many=True)
def add_product(
    op: Operation, bias: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1
) -> Shadow:
    """Multiply matrices, scale the product, and add a bias."""
    multiplied = product(replace(op, target=torch.matmul), a, b)
    scaled = replace(
        multiplied,
        c=multiplied.c * alpha,
        v=multiplied.v * alpha,
        slack=multiplied.slack * abs(alpha),
    )
    return add_bias(op, scaled, None if beta == 0 else bias)


@law(
    "mean", "sum", "cumsum", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d",
    "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d", "col2im",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d", "trace",
)  # fmt: skip
def built_in(op: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Shadow:
    """Means, sums and interpolation: linear maps with built-in weights."""
    kwargs.pop("dtype", None)
    return averaging(op, x, lambda plane: op.run(plane, *args, **kwargs))


@law("avg_pool1d", "avg_pool2d", "avg_pool3d")
def average_pool(op: Operation, x: Shadow, *args: Any) -> Shadow:
    """Means over windows, in which padded zeros may or may not count."""
    out = averaging(op, x, lambda plane: op.run(plane, *args))
    # Arguments: kernel, stride, padding, ceil_mode, count_include_pad.
    full = [*args, *[[], 0, False, True][len(args) - 1 :]]
    without = op.run(x.c, *full[:4], False)
    if not near(out.c, without, out.slack).all():
        op.blame(
            "shift",
            "it counts its padded zeros, which stay when the image is offset.",
            "count_include_pad=False",
            suspects=False,
        )
        return replace(out, c=without)
    return out
