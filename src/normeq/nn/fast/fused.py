"""Sorting and padding in one and a half passes over memory, with an exact gradient.

Sorting two channels ``a, b`` is an absolute value in other coordinates: with their mean
``m = (a + b)/2`` and half their difference ``d = (b - a)/2``, ``min = m - |d|`` and
``max = m + |d|``. The convolutions before and after absorb the change of coordinates
(`give_means`, `take_means`), so that what is left of sort pooling changes half of the
values, where ReLU changes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from normeq.nn.padding import CopyMode, copy_borders_, copy_pad, copy_pad_adjoint, has_open_size


def give_means(weight: Tensor) -> Tensor:
    """Turn a kernel that gives pairs into one that gives means, then half differences."""
    first, second = weight[::2], weight[1::2]
    return torch.cat((first + second, second - first)) / 2


def take_means(weight: Tensor) -> Tensor:
    """Turn a kernel that takes sorted pairs into one that takes means, then half differences."""
    low, high = weight[:, ::2], weight[:, 1::2]
    return torch.cat((low + high, high - low), 1)


def sort_pad(x: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
    """Sort pairs given as means and half differences, and pad.

    Parameters
    ----------
    x
        ``(N, 2·P, H, W)``: the means of P pairs, then half their differences.
    pads, mode
        See `copy_pad`.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([3.0, -1.0]).reshape(1, 2, 1, 1)  # the pair (4, 2)
    >>> sort_pad(x, (0, 0, 0, 0), "reflect").flatten()  # the pair (2, 4)
    tensor([3., 1.])
    """
    if torch.is_grad_enabled() and x.requires_grad and not torch.compiler.is_compiling():
        out: Tensor = _SortPad.apply(x, tuple(pads), mode)[0]  # type: ignore[no-untyped-call]
        return out
    return _sort_pad(x, pads, mode)


def _sort_pad(x: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
    if has_open_size(x):  # exported, where writing in place would be scattering
        means = x[:, : x.shape[1] // 2]
        return copy_pad(torch.cat((means, _differences(x).abs()), 1), pads, mode)
    padded = copy_pad(x, pads, mode) if any(pads) else x.clone()
    sort_in_place_(padded)
    return padded


def sort_in_place_(x: Tensor) -> None:
    """Sort pairs given as means and half differences."""
    _differences(x).abs_()


def _differences(x: Tensor) -> Tensor:
    return x[:, x.shape[1] // 2 :]


class _SortPad(torch.autograd.Function):
    """`sort_pad`, of which only the signs of the differences are kept for the gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, pads: Sequence[int], mode: CopyMode) -> tuple[Tensor, Tensor]:
        return _sort_pad(x, pads, mode), _differences(x).sgn()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, ctx.pads, ctx.mode = inputs
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None]:
        (signs,) = ctx.saved_tensors
        grad = copy_pad_adjoint(grad, ctx.pads, ctx.mode)
        _differences(grad).mul_(signs)
        return grad, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, None]:
        (signs,) = ctx.saved_tensors
        tangent = torch.cat((tangent[:, : signs.shape[1]], _differences(tangent) * signs), 1)
        return copy_pad(tangent, ctx.pads, ctx.mode), None


def add_scaled(x: Tensor, other: Tensor, scale: Tensor) -> Tensor:
    """Return ``x + scale·other`` for a trainable number `scale`.

    Examples
    --------
    >>> import torch
    >>> add_scaled(torch.ones(2), torch.ones(2), torch.tensor(0.5))
    tensor([1.5000, 1.5000])
    """
    tracked = torch.is_grad_enabled() and scale.requires_grad
    if tracked and x.shape == other.shape and not torch.compiler.is_compiling():
        out: Tensor = _AddScaled.apply(x, other, scale)  # type: ignore[no-untyped-call]
        return out
    return torch.addcmul(x, other, scale)


def add_scaled_pad(
    x: Tensor, other: Tensor, scale: Tensor, pads: Sequence[int], mode: CopyMode
) -> tuple[Tensor, Tensor]:
    """Return ``x + scale·other`` padded and, within it where that is possible, as it is.

    Examples
    --------
    >>> import torch
    >>> one = torch.ones(1, 1, 2, 2)
    >>> padded, bare = add_scaled_pad(one, one, torch.tensor(0.5), (1, 1, 1, 1), "reflect")
    >>> padded.shape, bare.shape
    (torch.Size([1, 1, 4, 4]), torch.Size([1, 1, 2, 2]))
    """
    tracked = torch.is_grad_enabled() and any(t.requires_grad for t in (x, other, scale))
    if tracked or x.shape != other.shape or torch.compiler.is_compiling():
        bare = add_scaled(x, other, scale)
        return copy_pad(bare, pads, mode), bare
    left, right, top, bottom = pads
    height, width = x.shape[-2:]
    channels_last = x.is_contiguous(memory_format=torch.channels_last)
    padded = torch.empty(
        (*x.shape[:2], top + height + bottom, left + width + right),
        dtype=x.dtype,
        device=x.device,
        memory_format=torch.channels_last if channels_last else torch.contiguous_format,
    )
    bare = padded[..., top : top + height, left : left + width]
    torch.addcmul(x, other, scale, out=bare)
    copy_borders_(padded, pads, mode)
    return padded, bare


class _AddScaled(torch.autograd.Function):
    """`add_scaled`, without a product of gradient and features for the gradient of the number."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, other: Tensor, scale: Tensor) -> Tensor:
        return torch.addcmul(x, other, scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        other, scale = ctx.saved_tensors
        return grad, grad * scale, _inner_product(grad, other)


def _inner_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of products, without an array of products where memory layouts agree."""
    if a.ndim == 4 and a.is_contiguous(memory_format=torch.channels_last):
        a, b = a.permute(0, 2, 3, 1), b.permute(0, 2, 3, 1)
    if a.is_contiguous() and b.is_contiguous():
        return torch.dot(a.view(-1), b.view(-1))
    return (a * b).sum()
