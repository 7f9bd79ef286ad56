"""The same function, faster: constraints baked, sorting and residuals absorbed by kernels."""

from __future__ import annotations

import inspect
from typing import TypeVar

import torch
from torch import fx, nn

from normeq.nn.affine_residual import AffineResidual
from normeq.nn.copies import bake_weights, private_copy
from normeq.nn.fast.absorption import LINEAR_LAYERS, AbsorbingConv, absorb
from normeq.nn.fast.borders import keep_borders
from normeq.nn.fast.graph import GraphEditor, trace
from normeq.nn.sort import SortPool

ModuleT = TypeVar("ModuleT", bound=nn.Module)

# What the better forward pass of a module is called in it.
_REWRITTEN = "fast"


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
    fast = private_copy(net).eval().requires_grad_(False)
    bake_weights(fast)
    _rewrite(fast)
    _bake_absorbed(fast)
    _keep_borders(fast)
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
    twin = private_copy(net, shared)
    _rewrite(twin)
    return twin


def _bake_absorbed(net: nn.Module) -> None:
    """Compute the kernels of convolutions that have absorbed something, once for all."""
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, AbsorbingConv):
                setattr(module, name, child.baked())


def _keep_borders(net: nn.Module) -> None:
    """Let the rewritten parts pad features once for several convolutions."""
    for module in list(net.modules()):
        part = module._modules.get(_REWRITTEN)
        if isinstance(part, fx.GraphModule):
            keep_borders(part)
            module.forward = part.forward


def _is_layer(module: nn.Module) -> bool:
    """Whether a module has nothing in it to rewrite."""
    layers = (*LINEAR_LAYERS, SortPool, AffineResidual)
    return isinstance(module, layers) or not any(module.children())


def _is_leaf(module: nn.Module) -> bool:
    """Whether a module is called as a whole: layers, ours and torch's."""
    is_of_torch = type(module).__module__.startswith("torch.")
    return _is_layer(module) or (is_of_torch and not isinstance(module, nn.Sequential))


def _rewrite(module: nn.Module) -> None:
    """Replace the forward pass of the largest parts that can be traced by a better one."""
    if _is_layer(module):
        return
    graph = _own_graph(module)
    if graph is None:
        for child in module.children():
            _rewrite(child)
        return
    editor = GraphEditor(module, graph)
    absorb(editor)
    part = editor.finish()
    # The module stays what it is to its users: only what it computes with is exchanged.
    module._modules.clear()
    module._parameters.clear()
    module._buffers.clear()
    module.add_module(_REWRITTEN, part)
    module.forward = part.forward


def _own_graph(module: nn.Module) -> fx.Graph | None:
    """Return the graph of a module, if it is the same for all inputs."""
    arguments = inspect.signature(module.forward).parameters.values()
    if any(argument.default is not argument.empty for argument in arguments):
        return None  # a trace would not show what happens without an optional argument
    try:
        return trace(module, _is_leaf)
    except Exception:  # whatever a forward pass does with a symbol that only tensors can do
        return None
