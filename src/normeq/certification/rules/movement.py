"""Laws of operations that only move values: elements take their degree and coefficient along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, shadows_in
from normeq.certification.rules.demands import alike, ignore_gain, ignore_offset
from normeq.certification.shadow import ANY, Shadow, lift, near, scrambled

FLOATING = "stay in floating point"
COPY_PADDING = "padding that copies values (padding_mode='reflect', 'replicate' or 'circular')"

_JOINS = {"cat", "concat", "stack", "hstack", "vstack", "slice_scatter", "select_scatter"}


@law(
    "view", "_unsafe_view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "permute",
    "transpose", "t", "numpy_T", "movedim", "moveaxis", "swapaxes", "swapdims", "slice", "select",
    "narrow", "expand", "expand_as", "unsqueeze", "squeeze", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "unfold", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle",
    "roll", "flip", "fliplr", "flipud", "rot90", "repeat", "tile", "repeat_interleave",
    "index_select", "diagonal", "clone", "contiguous", "alias", "detach", "lift_fresh_copy",
    "broadcast_to", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
    "replication_pad1d", "replication_pad2d", "replication_pad3d", "cat", "concat", "stack",
    "slice_scatter", "select_scatter", "hstack", "vstack", "unsafe_split", "view_copy", "ravel",
    "atleast_2d", "atleast_3d", "item", "_local_scalar_dense", many=True)  # fmt: skip
def move(op: Operation, *args: Any, **kwargs: Any) -> Any:
    """Values keep their law wherever they go."""
    if op.name in ("item", "_local_scalar_dense"):
        return args[0].map(lambda plane: plane.reshape(()))
    if op.name in _JOINS:
        args = tuple(_lift_all(arg) for arg in args)
    return op.run_planes(args, kwargs)


def _lift_all(value: Any) -> Any:
    """Lift tensors among the arguments, so that constants can be joined with shadows."""
    if isinstance(value, Tensor):
        return lift(value)
    if isinstance(value, list | tuple):
        return type(value)(_lift_all(item) for item in value)
    return value


@law("copy", "fill", many=True)
def copy(op: Operation, into: Any, source: Any, *_: Any) -> Shadow:
    """Replace a tensor by what is copied over it."""
    shadow = source if isinstance(source, Shadow) else lift(source)
    return shadow.map(lambda plane: plane.broadcast_to(op.shapes[0]))


@law("to", "_to_copy", "type_as", "to_dtype", many=True)
def cast(op: Operation, x: Shadow | Tensor, *args: Any, **kwargs: Any) -> Shadow:
    """Keep the law in another number format; whole numbers are judged as any operation's are."""
    if not isinstance(x, Shadow):
        return lift(x)
    if op.dtype.is_complex and not x.c.is_complex():
        x = replace(x, c=x.c.to(torch.complex128), v=x.v.to(torch.complex128))
    return replace(x, slack=x.slack.hypot(op.eps * x.c.abs()))


def whole_numbers(op: Operation, x: Shadow) -> Shadow:
    """Demand that what becomes whole numbers is ratios, which do not change by rounding."""
    ratios = ignore_gain(op, x, "rounds to whole numbers", FLOATING)
    out = ignore_offset(op, ratios, "rounds to whole numbers", FLOATING)
    return out.with_values(scrambled("whole", x.v))


@law("index", "gather", "take_along_dim", "take", many=True)
def pick(op: Operation, x: Any, *indices: Any, **kwargs: Any) -> Any:
    """Move values from fixed positions; those found in the image need one law for all values."""
    found_in_image = list(shadows_in([indices, kwargs]))
    if not found_in_image:
        return move(op, x, *indices, **kwargs)
    for index in found_in_image:
        ignore_offset(op, index, "picks by", "pick by order or by comparison")
    shadow = x if isinstance(x, Shadow) else lift(x)
    every = alike(op, shadow, range(shadow.c.ndim), "picks, by what it sees, among")
    return op.refreshed(every.map(lambda plane: plane.reshape(()).expand(tuple(op.shapes[0]))))


@law("pad", "constant_pad_nd")
def pad(op: Operation, x: Shadow, pads: Sequence[int], *rest: Any) -> Shadow:
    """Keep the law by copies, and by fixed values only where the offset does not matter."""
    mode = rest[0] if op.name == "pad" and rest else "constant"
    if mode != "constant":
        padded: Shadow = op.run_planes((x, pads, *rest), {})
        return padded
    value = float(next((r for r in reversed(rest) if isinstance(r, int | float)), 0.0))
    scale_free = value == 0 or math.isinf(value)
    amounts = list(pads)
    d = torch.constant_pad_nd(x.d, amounts, ANY if scale_free else 0.0)
    c, slack = (torch.constant_pad_nd(plane, amounts) for plane in (x.c, x.slack))
    v = torch.constant_pad_nd(x.v, amounts, float(lift(value).v))
    if not scale_free and x.scales.any():
        op.blame("scale", f"it pads with the fixed value {value:g}.", COPY_PADDING)
        d = replicate(x.d, pads)
    copied = x.map(lambda plane: replicate(plane, pads))
    if not near(c, copied.c, copied.slack).all():
        op.blame(
            "shift", f"it pads with {value:g}, which stays when the image is offset.", COPY_PADDING
        )
        return copied
    return Shadow(d, c, v, slack)


def replicate(plane: Tensor, pads: Sequence[int]) -> Tensor:
    """Pad any axes with copies of the border; `pads` as in `torch.nn.functional.pad`."""
    for axis in range(len(pads) // 2):
        dim, before, after = plane.ndim - 1 - axis, pads[2 * axis], pads[2 * axis + 1]
        where = torch.arange(-before, plane.shape[dim] + after).clamp(0, plane.shape[dim] - 1)
        plane = plane.index_select(dim, where)
    return plane


@law("im2col")
def patches(
    op: Operation, x: Shadow, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Shadow:
    """Patches are moved values, but their padding is with zeros."""
    rows, columns = padding
    padded = pad(op, x, (columns, columns, rows, rows)) if rows or columns else x
    moved: Shadow = op.run_planes((padded, kernel, dilation, [0, 0], stride), {})
    return moved
