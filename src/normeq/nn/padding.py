"""Padding that only copies existing values, at every size down to one pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor
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
    axes = range(len(pads) // 2)
    if all(_fits(x, axis, pads, mode) for axis in axes):
        return F.pad(x, tuple(pads), mode)
    for axis in axes:
        one_axis = [0] * len(pads)
        one_axis[2 * axis : 2 * axis + 2] = pads[2 * axis : 2 * axis + 2]
        x = F.pad(x, one_axis, mode if _fits(x, axis, pads, mode) else "replicate")
    return x


def _fits(x: Tensor, axis: int, pads: Sequence[int], mode: CopyMode) -> bool:
    """Whether `mode` is defined for these amounts along the axis counted from the last one."""
    size, widest = x.shape[-1 - axis], max(pads[2 * axis : 2 * axis + 2])
    needed = {"reflect": widest + 1, "circular": widest, "replicate": 1}[mode]
    return size >= needed


def pad_to_multiple(x: Tensor, multiple: int, mode: CopyMode = "reflect") -> Tensor:
    """Pad height and width at their ends, by copies, up to the next multiple.

    Examples
    --------
    >>> import torch
    >>> pad_to_multiple(torch.zeros(1, 1, 5, 8), 4).shape
    torch.Size([1, 1, 8, 8])
    """
    height, width = x.shape[-2:]
    return copy_pad(x, (0, -width % multiple, 0, -height % multiple), mode)
