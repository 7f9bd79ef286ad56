"""The same function, faster: constraints baked, sorting and residuals absorbed by kernels."""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Sequence
from typing import Any, TypeGuard, TypeVar

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from normeq.nn.affine_residual import AffineResidual
from normeq.nn.constraint import conv_padding
from normeq.nn.fast.borders import keep_borders
from normeq.nn.fast.fused import add_scaled_pad, give_means, sort_pad, take_means
from normeq.nn.padding import COPY_MODES, CopyMode
from normeq.nn.sort import SortPool

_LINEAR = nn.Conv2d, nn.ConvTranspose2d, nn.Linear
ModuleT = TypeVar("ModuleT", bound=nn.Module)


def fold(net: ModuleT) -> ModuleT:
    """Return a copy for inference: ``fold(net)(x) = net(x)`` up to rounding, in less time.

    Constrained kernels are computed once for all, what `fuse` absorbs is absorbed, and kernels
    are laid out with channels last, the fastest order for inference. Attributes, signature and
    equivariance are those of `net`, which is left as it is.

    Parameters
    ----------
    net
        Any network. Layers that are not recognised stay as they are.

    Examples
    --------
    >>> import normeq, torch
    >>> net = normeq.create("unet", widths=(4, 8), blocks=1)
    >>> x = torch.rand(1, 1, 9, 9)
    >>> torch.allclose(fold(net)(x), net(x), atol=1e-5)
    True
    """
    fast = copy.deepcopy(net).eval().requires_grad_(False)
    for module in list(fast.modules()):
        _bake(module)
    _rewrite(fast)
    for module in list(fast.modules()):
        for name, child in module.named_children():
            if isinstance(child, _AbsorbingConv):
                setattr(module, name, child.baked())
    for module in list(fast.modules()):
        part = module._modules.get("fast")
        if isinstance(part, fx.GraphModule):
            keep_borders(part)
            module.forward = part.forward
    for parameter in fast.parameters():
        if parameter.ndim == 4:  # kernels of images; other dimensions have no such order
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return fast


def fuse(net: ModuleT) -> ModuleT:
    """Return a twin for training: ``fuse(net)(x) = net(x)`` up to rounding, in less time.

    It shares its parameters with `net`, where gradients arrive: optimise and save those. Sort
    pooling between two convolutions becomes an absolute value of half the channels, fused with
    padding (see `normeq.nn.fast.fused`); the weight that an affine residual gives to a convolution
    moves into its kernel; ReLU after a convolution works in place.

    Parameters
    ----------
    net
        Any network. Layers that are not recognised stay as they are.

    Examples
    --------
    >>> import normeq, torch
    >>> net = normeq.create("unet", widths=(4, 8), blocks=1)
    >>> fuse(net)(torch.rand(1, 1, 9, 9)).mean().backward()
    >>> all(parameter.grad is not None for parameter in net.parameters())
    True
    """
    shared = {id(tensor): tensor for tensor in (*net.parameters(), *net.buffers())}
    twin = copy.deepcopy(net, shared)
    _rewrite(twin)
    return twin


def _bake(module: nn.Module) -> None:
    """Replace parametrized tensors by their values.

    Unlike `torch.nn.utils.parametrize.remove_parametrizations`, which changes the class that a
    module shares with its copies.
    """
    if not parametrize.is_parametrized(module):
        return
    names = list(module.parametrizations)  # type: ignore[arg-type]
    values = {name: getattr(module, name) for name in names}
    module.__class__ = parametrize.type_before_parametrizations(module)
    del module.parametrizations
    for name, value in values.items():
        module.register_parameter(name, nn.Parameter(value, requires_grad=False))


class _AbsorbingConv(nn.Module):
    """A convolution whose kernel absorbs what stood around it."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv
        self.gives_means = False
        self.takes_means = False
        self.is_padded = False
        self.residual: AffineResidual | None = None

    def kernel(self) -> Tensor:
        kernel: Tensor = self.conv.weight
        if self.gives_means:
            kernel = give_means(kernel)
        if self.takes_means:
            kernel = take_means(kernel)
        if self.residual is not None:
            kernel = kernel * self.residual.t
        return kernel

    def forward(self, x: Tensor) -> Tensor:
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


class _AbsorbedResidual(nn.Module):
    """What is left of an affine residual whose second branch carries its weight already."""

    def __init__(self, residual: AffineResidual) -> None:
        super().__init__()
        self.residual = residual

    def forward(
        self, a: Tensor, weighted: Tensor, pads: Sequence[int], mode: CopyMode
    ) -> tuple[Tensor, Tensor]:
        """Return the sum padded, and as it is."""
        return add_scaled_pad(weighted, a, 1 - self.residual.t, pads, mode)


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return _is_leaf(m) or super().is_leaf_module(m, module_qualified_name)


def _is_leaf(module: nn.Module) -> bool:
    return isinstance(module, (*_LINEAR, SortPool, AffineResidual)) or not any(module.children())


def _rewrite(module: nn.Module) -> None:
    """Replace the forward pass of the largest parts that can be traced by a better one."""
    if _is_leaf(module):
        return
    graph = _trace(module)
    if graph is None:
        for child in module.children():
            _rewrite(child)
        return
    part = fx.GraphModule(module, graph)
    _absorb(part)
    # The module stays what it is to its users: only what it computes with is exchanged.
    module._modules.clear()
    module._parameters.clear()
    module._buffers.clear()
    module.add_module("fast", part)
    module.forward = part.forward


def _trace(module: nn.Module) -> fx.Graph | None:
    """Return the graph of a module, if it is the same for all inputs."""
    arguments = inspect.signature(module.forward).parameters.values()
    if any(argument.default is not argument.empty for argument in arguments):
        return None  # a trace would not show what happens without an optional argument
    try:
        return _Tracer().trace(module)
    except Exception:  # whatever a forward pass does with a symbol that only tensors can do
        return None


class _Part:
    """A traced part of a network, whose convolutions can be made to absorb their neighbours."""

    def __init__(self, traced: fx.GraphModule) -> None:
        self.traced = traced
        self.modules = dict(traced.named_modules())

    def layer(self, node: Any) -> nn.Module | None:
        """Return the layer that a node calls with positional arguments, if it calls one."""
        is_call = isinstance(node, fx.Node) and node.op == "call_module" and not node.kwargs
        return self.modules[node.target] if is_call else None

    def replace(self, node: fx.Node, layer: nn.Module) -> None:
        """Let a node call another layer."""
        node.target = f"{node.name}_fast"
        self.traced.add_submodule(node.target, layer)
        self.modules[node.target] = layer

    def can_absorb(self, node: Any) -> bool:
        """Whether a node is a convolution that is nothing but its kernel."""
        layer = self.layer(node)
        conv = layer.conv if isinstance(layer, _AbsorbingConv) else layer
        return isinstance(conv, nn.Conv2d) and conv.bias is None and conv.groups == 1

    def absorbing(self, node: fx.Node) -> _AbsorbingConv:
        """Turn the convolution of a node, unless it is one already, into an absorbing one."""
        layer = self.layer(node)
        if not isinstance(layer, _AbsorbingConv):
            assert isinstance(layer, nn.Conv2d)
            layer = _AbsorbingConv(layer)
            self.replace(node, layer)
        return layer

    def absorb_sort(self, node: fx.Node, sort: SortPool) -> None:
        """Leave of a sort between two convolutions an absolute value, fused with padding."""
        before, users = node.args[0], list(node.users)
        if sort.group != 2 or len(users) != 1 or not _feeds_only(before, node):
            return
        after = users[0]
        if not (self.can_absorb(before) and self.can_absorb(after)):
            return
        first, second = self.absorbing(before), self.absorbing(after)
        if first.conv.out_channels % 2:
            return
        first.gives_means = second.takes_means = True
        node.op, node.target = "call_function", sort_pad
        node.args = (before, *self.take_padding([after]))

    def absorb_residual(self, node: fx.Node, residual: AffineResidual) -> None:
        """Move the weight of a residual's second branch into its last convolution."""
        a, b = node.args
        if a is b or not _feeds_only(b, node) or not self.can_absorb(b):
            return
        self.absorbing(b).residual = residual
        self.replace(node, _AbsorbedResidual(residual))
        padded_for = self.copy_padded_convs(node)
        users = [user for user in node.users if user not in padded_for]
        node.args = (a, b, *self.take_padding(padded_for))
        with self.traced.graph.inserting_after(node):
            padded = self.traced.graph.call_function(operator.getitem, (node, 0))
            bare = self.traced.graph.call_function(operator.getitem, (node, 1))
        for user in users:
            user.replace_input_with(node, bare)
        for user in padded_for:
            user.replace_input_with(node, padded)

    def copy_padded_convs(self, node: fx.Node) -> list[fx.Node]:
        """Return the convolutions that pad this value by copies, all in the same way."""
        found: dict[tuple[Any, ...], list[fx.Node]] = {}
        for user in filter(self.can_absorb, node.users):
            conv = self.layer(user)
            assert isinstance(conv, nn.Conv2d)
            if conv.padding_mode in COPY_MODES:
                found.setdefault((*conv_padding(conv), conv.padding_mode), []).append(user)
        return max(found.values(), key=len, default=[])

    def take_padding(self, convs: list[fx.Node]) -> tuple[tuple[int, ...], str]:
        """Let convolutions expect their input padded; return how."""
        pads: tuple[int, ...] = (0, 0, 0, 0)
        mode = "reflect"
        for node in convs:
            layer = self.absorbing(node)
            if layer.conv.padding_mode in COPY_MODES:
                layer.is_padded = True
                pads, mode = tuple(conv_padding(layer.conv)), layer.conv.padding_mode
        return pads, mode

    def reuse_memory(self, node: fx.Node) -> None:
        """Let ReLU write over the output of a linear layer, which no gradient needs."""
        before = node.args[0]
        if _feeds_only(before, node) and isinstance(self.layer(before), (*_LINEAR, _AbsorbingConv)):
            self.replace(node, nn.ReLU(inplace=True))


def _feeds_only(node: Any, user: fx.Node) -> TypeGuard[fx.Node]:
    return isinstance(node, fx.Node) and list(node.users) == [user]


def _absorb(traced: fx.GraphModule) -> None:
    """Let convolutions absorb the layers around them."""
    part = _Part(traced)
    for node in traced.graph.nodes:
        match part.layer(node):
            case SortPool() as sort:
                part.absorb_sort(node, sort)
            case AffineResidual() as residual:
                part.absorb_residual(node, residual)
            case nn.ReLU():
                part.reuse_memory(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
