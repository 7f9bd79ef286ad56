"""Features that keep their border from one convolution to the next.

Padding is a pass over memory. Where features are large, it is cheaper to let a convolution of
padded features give features of the same padded size, with anything at all in their border, and
to copy the border alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from normeq.nn.fast.fused import sort_in_place_, sort_pad
from normeq.nn.padding import CopyMode, copy_borders_

# The border of a feature costs as many multiplications a channel as any other pixel, padding as
# much memory: fewer channels and longer sides favour the border. Measured: see docs/speed.md.
_SIDE_PER_CHANNEL = 2


class BorderedConv(nn.Module):
    """A convolution without padding or, where that is cheaper, with a border to be written over."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.weight = conv.weight
        self.border = conv.kernel_size[0] // 2

    def forward(self, x: Tensor) -> Tensor:
        """Return features smaller than `x` by the border, or as large as `x` with a border."""
        return F.conv2d(x, self.weight, padding=self.border if _border_is_cheaper(x) else 0)


def sort_bordered(x: Tensor, given: Tensor, pads: Sequence[int], mode: CopyMode) -> Tensor:
    """Do what `sort_pad` does, with less work if `x` has a border already.

    Parameters
    ----------
    x
        What a `BorderedConv` made of `given`; overwritten.
    given
        The padded features from which it was made.
    pads, mode
        See `sort_pad`.
    """
    if x.shape[-2:] != given.shape[-2:]:
        return sort_pad(x, pads, mode)
    sort_in_place_(x)
    copy_borders_(x, pads, mode)
    return x


def keep_borders(part: fx.GraphModule) -> None:
    """Let features keep their border wherever a convolution is followed by `sort_pad`."""
    for node in part.graph.find_nodes(op="call_function", target=sort_pad):
        before, pads, mode = node.args
        conv = part.get_submodule(before.target) if before.op == "call_module" else None
        if isinstance(conv, nn.Conv2d) and _shrinks_by(conv, pads):
            part.add_submodule(before.target, BorderedConv(conv))
            node.target, node.args = sort_bordered, (before, before.args[0], pads, mode)
    part.recompile()


def _shrinks_by(conv: nn.Conv2d, pads: Sequence[int]) -> bool:
    """Whether a convolution takes as much from each side as padding gives back."""
    side = 2 * pads[0] + 1
    return (
        len(set(pads)) == 1
        and pads[0] > 0
        and conv.kernel_size == (side, side)
        and (conv.padding, conv.stride, conv.dilation) == ((0, 0), (1, 1), (1, 1))
        and conv.groups == 1
        and conv.bias is None
    )


def _border_is_cheaper(x: Tensor) -> bool:
    # The choice depends on the size, which compiled and exported networks leave open; and
    # features that are written over have no gradient.
    if torch.compiler.is_compiling() or (torch.is_grad_enabled() and x.requires_grad):
        return False
    return min(x.shape[-2:]) >= _SIDE_PER_CHANNEL * x.shape[1]
