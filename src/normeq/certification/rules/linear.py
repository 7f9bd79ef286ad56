"""Laws of linear maps: degrees are kept, and coefficients go through the map itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, span
from normeq.certification.rules.demands import agree, alike, ignore_offset
from normeq.certification.rules.movement import COPY_PADDING, replicate
from normeq.certification.shadow import ANY, Shadow, clean, lift, near

#: Applies a linear map with the given weights to a plane.
Map = Callable[[Tensor, Tensor], Tensor]

NO_BIAS = "no bias (bias=False)"
AFFINE = (
    "kernels that sum to one (normeq.nn.constrain, AffineConv2d, AffineLinear), "
    "or to zero (ZeroSumConv2d)"
)


def linear_map(
    step: Operation,
    x: Shadow,
    weight: Tensor,
    apply: Map,
    inside: Callable[[Tensor], Tensor] | None = None,
) -> Shadow:
    """Send a shadow through a linear map with known weights.

    What the kernels sum to is told `inside` the image, where padding does not matter.
    Rounding adds up as independent errors do, through the squared kernel.
    """
    c = apply(x.c, weight) if x.c.any() else torch.zeros(tuple(step.shapes[0]), dtype=torch.float64)
    # An estimate needs no double precision, which is slow.
    slack, rough = x.slack.float(), weight.float()
    squares = slack.square() + step.eps**2 * x.c.float().square()
    out = Shadow(
        mixed_degrees(step, x.d, lambda plane: apply(plane, weight.abs())),
        c,
        apply(squares, rough.square()).clamp(min=0).sqrt().double(),
    )
    _suspect_kernel_sums(step, x, out, inside or (lambda plane: apply(plane, weight)))
    return out


def averaging(step: Operation, x: Shadow, apply: Callable[[Tensor], Tensor]) -> Shadow:
    """Send a shadow through a linear map whose weights are built in (means, interpolation)."""
    slack = apply(x.slack).abs() + step.eps * apply(x.c).abs()
    out = Shadow(mixed_degrees(step, x.d, apply), apply(x.c), slack)
    _suspect_kernel_sums(step, x, out, apply)
    return out


def mixed_degrees(step: Operation, d: Tensor, reach: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the one degree that each output sees; `reach` maps what each output is made of."""
    present = d[d != ANY].unique().tolist()
    out = torch.full(tuple(step.shapes[0]), ANY, dtype=torch.float64)
    if len(present) == 1 and not (d == ANY).any():
        return out.fill_(present[0])
    clash = torch.zeros_like(out, dtype=torch.bool)
    for degree in present:
        seen = reach((d == degree).to(d.dtype)) != 0
        clash |= seen & (out != ANY)
        out = torch.where(seen & (out == ANY), degree, out)
    if clash.any():
        degrees = " and ".join(f"{degree:g}" for degree in present)
        step.blame(
            "scale",
            f"it mixes features of degrees {degrees}.",
            "bring them to one degree before (divide or multiply by a spread of the image)",
        )
    return out


def _suspect_kernel_sums(
    step: Operation, x: Shadow, out: Shadow, apply: Callable[[Tensor], Tensor]
) -> None:
    """Remember a map that would turn features that follow the offset into something else."""
    if not x.moves.any():
        return
    exact = Shadow(out.d, apply(x.moves.to(torch.float64)), out.slack)
    if not clean(exact):
        step.suspect("shift", f"its kernels sum to {span(exact.c)}, not to one.", AFFINE)


def add_bias(step: Operation, out: Shadow, bias: Any, trailing: int) -> Shadow:
    """Add a bias, followed by so many further axes: it breaks scale unless it is zero."""
    if bias is None:
        return out
    if isinstance(bias, Shadow):
        step.blame("scale", "its bias depends on the image.", "a plain layer", unknown=True)
        step.blame("shift", "its bias depends on the image.", "a plain layer", unknown=True)
        return out
    constant = lift(bias.reshape(-1, *[1] * trailing) if trailing else bias)
    joined, clash = agree(out.d, constant.d.expand(out.shape))
    if clash.any():
        step.blame("scale", "it adds a bias, which stays when the image is scaled.", NO_BIAS)
        joined = out.d
    return Shadow(joined, out.c, out.slack)


@law("conv1d", "conv2d", "conv3d", many=True)
def convolution(
    step: Operation,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] | str = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Shadow:
    """Coefficients are the sums of the kernels, except where zeros have been padded."""
    if isinstance(weight, Shadow) or not isinstance(x, Shadow):
        return dynamic(step, x, weight, bias)
    ndim = weight.ndim - 2
    stride, dilation = _each(stride, ndim), _each(dilation, ndim)
    padding = padding if isinstance(padding, str) else _each(padding, ndim)

    def apply(plane: Tensor, kernel: Tensor) -> Tensor:
        result: Tensor = step.run(plane, kernel, None, stride, padding, dilation, groups)
        return result

    def inside(plane: Tensor) -> Tensor:
        result: Tensor = step.run(
            replicate(plane, pads), weight, None, stride, unpadded, dilation, groups
        )
        return result

    pads = _amounts(padding, weight.shape[2:], dilation)
    unpadded: Any = "valid" if isinstance(padding, str) else [0] * ndim
    out = linear_map(step, x, weight, apply, inside)
    if any(pads) and x.c.any():
        copied = inside(x.c)
        if not near(out.c, copied, out.slack).all():
            step.blame(
                "shift",
                "it pads with zeros, which stay when the image is offset.",
                COPY_PADDING,
                suspects=False,
            )
            out = out.with_c(copied)
    return add_bias(step, out, bias, ndim)


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
        totals = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
        pairs = [(total // 2, total - total // 2) for total in totals]
    else:
        pairs = [(int(p), int(p)) for p in padding]
    return [amount for pair in reversed(pairs) for amount in pair]


@law("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", many=True)
def transposed_convolution(
    step: Operation, x: Any, weight: Any, bias: Any = None, *rest: Any
) -> Shadow:
    """Coefficients are the sums of the kernels' phases."""
    if isinstance(weight, Shadow) or not isinstance(x, Shadow):
        return dynamic(step, x, weight, bias)
    out = linear_map(step, x, weight, lambda p, w: step.run(p, w, None, *rest))
    return add_bias(step, out, bias, weight.ndim - 2)


@law("linear", many=True)
def dense(step: Operation, x: Any, weight: Any, bias: Any = None) -> Shadow:
    """Coefficients are the sums of the rows."""
    if isinstance(weight, Shadow) or not isinstance(x, Shadow):
        return dynamic(step, x, weight, bias)
    return add_bias(step, linear_map(step, x, weight, lambda p, w: step.run(p, w)), bias, 0)


@law("mm", "bmm", "matmul", "mv", "dot", many=True)
def product(step: Operation, a: Any, b: Any) -> Shadow:
    """Multiply matrices: linear if one side is known, weighted means if one sums to one."""
    if not isinstance(b, Shadow):
        return linear_map(step, a, b, lambda p, w: step.run(p, w))
    if not isinstance(a, Shadow):
        return linear_map(step, b, a, lambda p, w: step.run(w, p))
    if a.c.ndim < 2 or b.c.ndim < 2:
        return dynamic(step, a, b)
    return contract(step, a, b)


@law("addmm", "baddbmm", many=True)
def add_product(
    step: Operation, bias: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1
) -> Any:
    """Multiply matrices and add a bias."""
    plain = Operation(**{**vars(step), "target": torch.matmul})
    if alpha != 1 and isinstance(b, Tensor):
        b = b * alpha
    elif alpha != 1:
        # Weights that are scaled add up to one no longer.
        a = Shadow(a.d, a.c * alpha, a.slack * abs(alpha)) if isinstance(a, Shadow) else a * alpha
    return add_bias(step, product(plain, a, b), None if beta == 0 else bias, 0)


def contract(step: Operation, a: Shadow, b: Shadow) -> Shadow:
    """Multiply two matrices that both depend on the image."""
    left = alike(step, Shadow(a.d, torch.zeros_like(a.c), a.slack), [-1], "sums products of")
    right = alike(step, Shadow(b.d, torch.zeros_like(b.c), b.slack), [-2], "sums products of")
    slack = step.eps + max(float(a.slack.max()), float(b.slack.max()))
    shape = step.shapes[0]
    d = (left.d + right.d).expand(shape)
    means = "sums weighted by something that adds up to one, over"
    if a.weights is not None and a.weights.complete_along(-1) and not a.moves.any():
        c = alike(step, b, [-2], means).c.expand(shape)
    elif b.weights is not None and b.weights.complete_along(-2) and not b.moves.any():
        c = alike(step, a, [-1], means).c.expand(shape)
    else:
        for factor in (a, b):
            ignore_offset(step, factor, "multiplies", WEIGHTED)
        c = torch.zeros(tuple(shape), dtype=torch.float64)
    return Shadow(d, c, torch.full_like(c, slack))


WEIGHTED = (
    "differences as factors, or weights that neither gain nor offset changes and that add up to "
    "one (normeq.nn.EquivariantAttention)"
)


def dynamic(step: Operation, x: Any, weight: Any, bias: Any = None) -> Shadow:
    """Multiply by a kernel that depends on the image."""
    factors = [s if isinstance(s, Shadow) else lift(s) for s in (x, weight)]
    degree = 0.0
    for factor in factors:
        ignore_offset(step, factor, "multiplies", WEIGHTED)
        every = alike(
            step,
            Shadow(factor.d, torch.zeros_like(factor.c), factor.slack),
            range(factor.c.ndim),
            "sums products of",
        )
        degree += float(every.d.reshape(-1)[0])
    return add_bias(step, step.output(degree, 0.0), bias, 0)


@law(
    "mean", "sum", "cumsum", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d",
    "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d", "col2im",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa", "_adaptive_avg_pool2d", "trace",
)  # fmt: skip
def built_in(step: Operation, x: Shadow, *args: Any, **kwargs: Any) -> Shadow:
    """Means, sums and interpolation: linear maps with built-in weights."""
    kwargs.pop("dtype", None)
    if x.weights and x.weights.debt:
        dims = args[0] if args and isinstance(args[0], list | tuple) else []
        if step.operation == "sum" and len(dims) == 1 and x.weights.complete_along(dims[0]):
            common = alike(step, x, dims, "sums, weighted by what adds up to one,")
            return common.map(lambda plane: plane.reshape(tuple(step.shapes[0])))
        step.blamed.append((x.weights.debt, True))
    return averaging(step, x, lambda plane: step.run(plane, *args, **kwargs))


@law("avg_pool1d", "avg_pool2d", "avg_pool3d")
def average_pool(step: Operation, x: Shadow, *args: Any) -> Shadow:
    """Means over windows, in which padded zeros may or may not count."""
    out = averaging(step, x, lambda plane: step.run(plane, *args))
    # Arguments: kernel, stride, padding, ceil_mode, count_include_pad.
    full = [*args, *[[], 0, False, True][len(args) - 1 :]]
    without = step.run(x.c, *full[:4], False)
    if not near(out.c, without, out.slack).all():
        step.blame(
            "shift",
            "it counts its padded zeros, which stay when the image is offset.",
            "count_include_pad=False",
            suspects=False,
        )
        return out.with_c(without)
    return out
