"""Padding that only copies existing values, at every size down to one pixel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.errors import UsageError

CopyMode = Literal["reflect", "replicate", "circular"]
COPY_MODES: tuple[CopyMode, ...] = ("reflect", "replicate", "circular")


def copy_pad(x: Tensor, pads: Sequence[int], mode: CopyMode = "reflect") -> Tensor:
    """Pad with copies of existing values: ``copy_pad(λ·x + μ) = λ·copy_pad(x) + μ``.

    Along an axis too short for `mode` (reflection needs more values than padding, circular at
    least as many) the border is replicated instead, so that any size can be padded.

    Parameters
    ----------
    x
        Values of shape ``(N, C, *spatial)`` with one to three spatial axes.
    pads
        Amounts before and after each axis, last axis first, as in `torch.nn.functional.pad`.
    mode
        What is copied.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[[1.0, 2.0, 3.0]]])
    >>> copy_pad(x, (2, 1)).tolist()
    [[[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]]
    >>> copy_pad(x[..., :1], (2, 1)).tolist()
    [[[1.0, 1.0, 1.0, 1.0]]]
    """
    if mode not in COPY_MODES:
        raise UsageError(f"padding mode {mode!r} does not copy values: use one of {COPY_MODES}.")
    if not any(pads):
        return x
    if torch.is_grad_enabled() and x.requires_grad and not torch.compiler.is_compiling():
        out: Tensor = _CopyPad.apply(x, tuple(pads), mode)  # type: ignore[no-untyped-call]
        return out
    return _pad(x, pads, mode)


class _CopyPad(torch.autograd.Function):
    """`copy_pad` with a gradient that costs one pass, where that of torch costs several."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
        return _pad(x, pads, mode)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.pads, ctx.mode = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return copy_pad_adjoint(grad, ctx.pads, ctx.mode), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return _pad(tangent, ctx.pads, ctx.mode)


def copy_pad_adjoint(grad: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
    """Add what padding copied back onto where it came from: the gradient of `copy_pad`.

    The values inside are copied once; only the borders, strip by strip, are added to them.
    """
    if not pads:
        return grad.clone()
    *other_axes, before, after = pads
    dim = grad.ndim - len(pads) // 2
    size = grad.shape[dim] - before - after
    inside = copy_pad_adjoint(grad.narrow(dim, before, size), other_axes, mode)
    for target, source in _copies(size, before, after, mode):
        strip = copy_pad_adjoint(grad.narrow(dim, before + target, 1), other_axes, mode)
        inside.narrow(dim, source, 1).add_(strip)
    return inside


def copy_borders_(padded: Tensor, pads: Sequence[int], mode: CopyMode) -> None:
    """Write the padding around values that are in place already."""
    for axis in range(len(pads) // 2):
        dim = padded.ndim - 1 - axis
        before, after = pads[2 * axis : 2 * axis + 2]
        size = padded.shape[dim] - before - after
        for target, source in _copies(size, before, after, mode):
            border, inside = (padded.narrow(dim, before + place, 1) for place in (target, source))
            border.copy_(inside)


def _copies(size: int, before: int, after: int, mode: CopyMode) -> Iterator[tuple[int, int]]:
    """Yield each position of the padding of `size` values, and the position copied to it."""
    for target in (*range(-before, 0), *range(size, size + after)):
        yield target, _source(target, size, max(before, after), mode)


def _source(position: int, size: int, widest: int, mode: CopyMode) -> int:
    """Return which of `size` values is copied to a position beyond them."""
    if mode == "circular" and _fits(size, widest, mode):
        return position % size
    if mode == "reflect" and _fits(size, widest, mode):
        return -position if position < 0 else 2 * (size - 1) - position
    return min(max(position, 0), size - 1)


def _pad(x: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
    if has_open_size(x):
        return _pad_open_sizes(x, pads, mode)
    modes = [
        mode if _fits(x.shape[-1 - axis], max(pads[2 * axis : 2 * axis + 2]), mode) else "replicate"
        for axis in range(len(pads) // 2)
    ]
    if all(fitting == mode for fitting in modes):
        return F.pad(x, tuple(pads), mode)
    for axis, fitting in enumerate(modes):
        one_axis = [0] * len(pads)
        one_axis[2 * axis : 2 * axis + 2] = pads[2 * axis : 2 * axis + 2]
        x = F.pad(x, one_axis, fitting)
    return x


def has_open_size(x: Tensor) -> bool:
    """Whether a size is left open by torch.export: nothing may be decided by such a size."""
    return any(isinstance(size, torch.SymInt) for size in x.shape)


def _pad_open_sizes(x: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
    """Pad by an index for each place, which is right for all sizes."""
    for axis in range(len(pads) // 2):
        before, after = pads[2 * axis : 2 * axis + 2]
        dim = x.ndim - 1 - axis
        x = _copied_to(x, dim, before, x.shape[dim] + before + after, mode)
    return x


def _copied_to(x: Tensor, dim: int, before: int, padded: int, mode: CopyMode) -> Tensor:
    """Lay values out along an axis of `padded` places, `before` of which precede them."""
    size = x.shape[dim]

    def number(value: int) -> Tensor:
        return torch.scalar_tensor(value, dtype=torch.int64, device=x.device)

    last = number(size - 1)
    places = torch.arange(padded, device=x.device) - before
    copied = places.clamp_min(0).minimum(last)
    if mode != "replicate":
        widest = number(padded - size - before).clamp_min(before)
        if mode == "reflect":
            inside, fits = last - (last - places.abs()).abs(), widest <= last
        else:
            inside, fits = places.remainder(size), widest <= last + 1
        copied = torch.where(fits, inside, copied)
    return x.index_select(dim, copied)


def _fits(size: int, widest: int, mode: CopyMode) -> bool:
    """Whether `mode` is defined for `widest` values of padding beside `size` values."""
    needed = {"reflect": widest + 1, "circular": widest, "replicate": 1}[mode]
    return size >= needed


class ReplicatePad(nn.Module):
    """Pad by repeating the border: ``pad(λ·x + μ, pads) = λ·pad(x, pads) + μ``.

    Takes what `torch.nn.functional.pad` takes when it pads with a constant: amounts for the last
    axes only, for channels too, or negative ones, which crop.

    Examples
    --------
    >>> import torch
    >>> ReplicatePad()(torch.tensor([[[1.0, 2.0, 3.0]]]), (-1, 2)).tolist()
    [[[2.0, 3.0, 3.0, 3.0]]]
    """

    def forward(self, x: Tensor, pads: Sequence[int]) -> Tensor:
        """Pad `x`, last axis first."""
        # torch replicates all axes but two: amounts are filled up for them, or axes put before.
        axes = max(x.ndim - 2, len(pads) // 2)
        more = axes + 2 - x.ndim
        filled = [*pads, *([0] * (2 * axes - len(pads)))]
        return F.pad(x[(None,) * more], filled, mode="replicate").flatten(0, more)


def pad_to_multiple(x: Tensor, multiple: int, mode: CopyMode = "reflect") -> Tensor:
    """Pad height and width at their ends, by copies, up to the next multiple.

    Examples
    --------
    >>> import torch
    >>> pad_to_multiple(torch.zeros(1, 1, 5, 8), 4).shape
    torch.Size([1, 1, 8, 8])
    """
    height, width = x.shape[-2:]
    if has_open_size(x):
        for dim, size in ((-2, height), (-1, width)):
            # A product, so that what divides the padded size is plain to see.
            padded = multiple * ((size + multiple - 1) // multiple)
            x = _copied_to(x, x.ndim + dim, 0, padded, mode)
        return x
    return copy_pad(x, (0, -width % multiple, 0, -height % multiple), mode)
