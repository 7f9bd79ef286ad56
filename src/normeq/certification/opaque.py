"""Wrappers around a function that cannot be traced, and need not be: it sees ratios only.

``T⁻¹ ∘ f ∘ T`` is equivariant for every function `f` that gives the same output for the same input.
So a wrapper is proven with an operation of unknown values in the place of `f`, whose law is that of
any function: its inputs must follow neither gain nor offset, and then neither does its output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from normeq.certification.operation import law
from normeq.certification.rules.elementwise import curve
from normeq.nn import LocallyNormalized, Normalized
from normeq.nn.copies import fresh, private_copy


@torch.library.custom_op("normeq::any_function", mutates_args=())
def any_function(inputs: list[Tensor], shape: list[int]) -> Tensor:
    """Stand for a function of which only the shape of its output is known."""
    return inputs[0].new_zeros(shape)


@any_function.register_fake
def _(inputs: list[Tensor], shape: list[int]) -> Tensor:
    return inputs[0].new_empty(shape)


law("normeq::any_function", many=True)(curve)


class _StandIn(nn.Module):
    """Calls a function once to learn the shape of its output, and from then on stands for it."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self._function = [function]  # in a list, so that it is not taken for a part of this module
        self._shape: list[int] | None = None

    def forward(self, *inputs: Tensor) -> Tensor:
        out: Tensor
        if self._shape is None:
            out = self._function[0](*inputs)
            self._shape = list(out.shape)
        else:
            out = any_function(list(inputs), self._shape)
        return out


def with_any_inner(module: nn.Module, args: Sequence[Any]) -> nn.Module | None:
    """Return a wrapper with any function in the place of its own; None if it is no wrapper."""
    if not isinstance(module, Normalized | LocallyNormalized):
        return None
    copied = private_copy(module)
    function = copied.inner
    del copied.inner
    copied.inner = _StandIn(function)
    with torch.no_grad():
        copied(*fresh(args))
    return copied
