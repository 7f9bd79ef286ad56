"""Convolutions that absorb the layers around them into their kernels."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import Any

from torch import Tensor, fx, nn
from torch.nn import functional as F

from normeq.nn.affine_residual import AffineResidual
from normeq.nn.constraint import conv_padding
from normeq.nn.fast.fused import add_scaled_pad, give_means, sort_pad, take_means
from normeq.nn.fast.graph import GraphEditor, feeds_only
from normeq.nn.padding import COPY_MODES, CopyMode
from normeq.nn.sort import SortPool

LINEAR_LAYERS = nn.Conv2d, nn.ConvTranspose2d, nn.Linear


class AbsorbingConv(nn.Module):
    """A convolution whose kernel absorbs what stood around it."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv
        self.gives_means = False
        self.takes_means = False
        self.is_padded = False
        self.residual: AffineResidual | None = None

    def kernel(self) -> Tensor:
        """Return the kernel with everything that it has absorbed."""
        kernel: Tensor = self.conv.weight
        if self.gives_means:
            kernel = give_means(kernel)
        if self.takes_means:
            kernel = take_means(kernel)
        if self.residual is not None:
            kernel = kernel * self.residual.t
        return kernel

    def forward(self, x: Tensor) -> Tensor:
        """Convolve; `x` is padded already where `is_padded` says so."""
        if self.is_padded:
            return F.conv2d(x, self.kernel(), None, self.conv.stride, 0, self.conv.dilation)
        out: Tensor = self.conv._conv_forward(x, self.kernel(), None)
        return out

    def baked(self) -> nn.Conv2d:
        """Return a convolution with the kernel of this moment."""
        conv = copy.deepcopy(self.conv)
        if self.is_padded:
            conv = nn.Conv2d(
                conv.in_channels,
                conv.out_channels,
                conv.kernel_size,  # type: ignore[arg-type]
                conv.stride,  # type: ignore[arg-type]
                dilation=conv.dilation,  # type: ignore[arg-type]
                bias=False,
                device="meta",  # draws no random numbers
            )
        conv.weight = nn.Parameter(self.kernel(), requires_grad=False)
        return conv


class AbsorbedResidual(nn.Module):
    """What is left of an affine residual whose second branch carries its weight already."""

    def __init__(self, residual: AffineResidual) -> None:
        super().__init__()
        self.residual = residual

    def forward(
        self, a: Tensor, weighted: Tensor, pads: Sequence[int], mode: CopyMode
    ) -> tuple[Tensor, Tensor]:
        """Return the sum padded, and as it is."""
        return add_scaled_pad(weighted, a, 1 - self.residual.t, pads, mode)


def absorb(editor: GraphEditor) -> None:
    """Let the convolutions of a forward pass absorb sorting, residuals and padding."""
    for node in editor.nodes:
        match _called(editor, node):
            case SortPool() as sort:
                _absorb_sort(editor, node, sort)
            case AffineResidual() as residual:
                _absorb_residual(editor, node, residual)
            case nn.ReLU():
                _reuse_memory(editor, node)


def _called(editor: GraphEditor, node: Any) -> nn.Module | None:
    """Return the layer that a node calls with positional arguments only."""
    return None if isinstance(node, fx.Node) and node.kwargs else editor.layer(node)


def _absorb_sort(editor: GraphEditor, node: fx.Node, sort: SortPool) -> None:
    """Leave of a sort between two convolutions an absolute value, fused with padding."""
    before, users = node.args[0], list(node.users)
    if sort.group != 2 or len(users) != 1 or not feeds_only(before, node):
        return
    after = users[0]
    if not (_can_absorb(editor, before) and _can_absorb(editor, after)):
        return
    first, second = _absorbing(editor, before), _absorbing(editor, after)
    if first.conv.out_channels % 2:
        return
    first.gives_means = second.takes_means = True
    editor.use_function(node, sort_pad, (before, *_take_padding(editor, [after])))


def _absorb_residual(editor: GraphEditor, node: fx.Node, residual: AffineResidual) -> None:
    """Move the weight of a residual's second branch into its last convolution."""
    a, b = node.args
    if a is b or not feeds_only(b, node) or not _can_absorb(editor, b):
        return
    _absorbing(editor, b).residual = residual
    padded_for = _copy_padded_convs(editor, node)
    users = [user for user in node.users if user not in padded_for]
    args = (a, b, *_take_padding(editor, padded_for))
    editor.use_layer(node, AbsorbedResidual(residual), args)
    with editor.graph.inserting_after(node):
        padded = editor.graph.call_function(operator.getitem, (node, 0))
        bare = editor.graph.call_function(operator.getitem, (node, 1))
    for user in users:
        user.replace_input_with(node, bare)
    for user in padded_for:
        user.replace_input_with(node, padded)


def _reuse_memory(editor: GraphEditor, node: fx.Node) -> None:
    """Let ReLU write over the output of a linear layer, which no gradient needs."""
    before = node.args[0]
    if feeds_only(before, node):
        layer = _called(editor, before)
        if isinstance(layer, (*LINEAR_LAYERS, AbsorbingConv)):
            editor.use_layer(node, nn.ReLU(inplace=True))


def _can_absorb(editor: GraphEditor, node: Any) -> bool:
    """Whether a node is a convolution that is nothing but its kernel."""
    layer = _called(editor, node)
    conv = layer.conv if isinstance(layer, AbsorbingConv) else layer
    return isinstance(conv, nn.Conv2d) and conv.bias is None and conv.groups == 1


def _absorbing(editor: GraphEditor, node: fx.Node) -> AbsorbingConv:
    """Return the absorbing convolution that a node calls, made from a plain one if need be."""
    layer = editor.layer(node)
    if not isinstance(layer, AbsorbingConv):
        assert isinstance(layer, nn.Conv2d)
        layer = AbsorbingConv(layer)
        editor.use_layer(node, layer)
    return layer


def _copy_padded_convs(editor: GraphEditor, node: fx.Node) -> list[fx.Node]:
    """Return the convolutions that pad a value by copies, all in the same way."""
    found: dict[tuple[Any, ...], list[fx.Node]] = {}
    for user in node.users:
        conv = editor.layer(user)
        if _can_absorb(editor, user) and isinstance(conv, nn.Conv2d):
            found.setdefault((*conv_padding(conv), conv.padding_mode), []).append(user)
    copied = [users for (*_, mode), users in found.items() if mode in COPY_MODES]
    return max(copied, key=len, default=[])


def _take_padding(editor: GraphEditor, convs: Sequence[fx.Node]) -> tuple[tuple[int, ...], str]:
    """Let convolutions expect their input padded; return how."""
    pads: tuple[int, ...] = (0, 0, 0, 0)
    mode = "reflect"
    for node in convs:
        layer = _absorbing(editor, node)
        if layer.conv.padding_mode in COPY_MODES:
            layer.is_padded = True
            pads, mode = tuple(conv_padding(layer.conv)), layer.conv.padding_mode
    return pads, mode
