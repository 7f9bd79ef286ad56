"""Batch norm with running statistics: folded into the layer before it, or kept for training.

The mode of each batch norm decides. In eval mode it is a gain and a shift for each channel. In
training mode it is about to learn from batches: statistics of ratios, which are scale-free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvTransposeNd

from normeq.conversion.network_editor import NetworkEditor, in_use, rehearsed_norms
from normeq.conversion.operations import class_name
from normeq.nn import Enclosed
from normeq.nn.copies import fresh, private_copy
from normeq.nn.fast.graph import feeds_only

LINEAR = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, _ConvTransposeNd)


class ChannelGain(nn.Module):
    """Multiply each channel by a trainable gain: what is left of a batch norm without its shift.

    Examples
    --------
    >>> import torch
    >>> ChannelGain(torch.tensor([2.0, 3.0]))(torch.ones(1, 2)).tolist()
    [[2.0, 3.0]]
    """

    def __init__(self, gain: Tensor) -> None:
        super().__init__()
        self.gain = nn.Parameter(gain.clone())

    def forward(self, x: Tensor) -> Tensor:
        """Scale the channels (axis 1)."""
        return x * self.gain.reshape(-1, *[1] * (x.ndim - 2))


def gain_of(norm: _BatchNorm) -> Tensor:
    """Return the gain of each channel."""
    assert norm.running_var is not None
    gain = (norm.running_var + norm.eps).rsqrt()
    return gain if norm.weight is None else (gain * norm.weight).detach()


@torch.no_grad()
def fold_batch_norms(editor: NetworkEditor) -> None:
    """Fold every batch norm in eval mode that directly follows a linear layer; its shift goes.

    One in training mode stays; the bias before it, which will be dropped, goes into its mean.
    """
    uses = _count_uses(editor)
    for forward in editor.forward_passes:
        for node in forward.nodes:
            norm, before = forward.layer(node), node.args[0] if node.args else None
            layer = forward.layer(before)
            if (
                has_statistics(norm)
                and feeds_only(before, node)
                and isinstance(layer, LINEAR)
                and "weight" in layer._parameters  # not computed from others
                and is_plain(layer)
                and uses[layer] == uses[norm] == 1
            ):
                if norm.training:
                    _move_bias(layer, norm)
                    continue
                _scale(layer, gain_of(norm))
                path = f"{forward.path}.{node.target}".lstrip(".")
                editor.replace(path, norm, nn.Identity(), f"folded into {class_name(layer)}")


def show_ratios(editor: NetworkEditor, path: str, norm: _BatchNorm, *, offset: bool) -> None:
    """Let a batch norm that is in training mode learn from ratios, which no gain changes."""
    enclosed = Enclosed(norm, offset=offset).to(norm.running_var)
    editor.replace(path, norm, enclosed, f"{class_name(norm)} of ratios")


@torch.no_grad()
def measure_usual_sizes(editor: NetworkEditor, args: Sequence[Any]) -> None:
    """Let batch norms of ratios see the example as they would by themselves.

    One after the other, so that each finds the features that it will have in the twin.
    """
    rehearsal = private_copy(editor.root)
    rehearsed = _norms_of_ratios(rehearsal)
    if not rehearsed:
        return
    for layer in rehearsed:
        layer.register_forward_pre_hook(lambda layer, given: layer.take_for_usual(given[0]))
    with in_use(rehearsal, rehearsed_norms(rehearsal, args)):
        rehearsal(*fresh(args))
        for layer, source in zip(_norms_of_ratios(editor.root), rehearsed, strict=True):
            layer.usual.copy_(source.usual)


def _norms_of_ratios(net: nn.Module) -> list[Enclosed]:
    return [
        layer
        for layer in net.modules()
        if isinstance(layer, Enclosed) and isinstance(layer.inner, _BatchNorm)
    ]


def is_plain(layer: nn.Module) -> bool:
    """Whether a linear layer is torch's own, not one that does something else with its weight."""
    kind = type(layer)
    torchs = next(base for base in kind.__mro__ if base.__module__.startswith("torch.nn."))
    return all(
        getattr(kind, method, None) is getattr(torchs, method, None)
        for method in ("forward", "_conv_forward")
    )


def has_statistics(layer: nn.Module | None) -> TypeGuard[_BatchNorm]:
    """Whether a layer is a batch norm with running statistics."""
    return isinstance(layer, _BatchNorm) and layer.running_var is not None


def _count_uses(editor: NetworkEditor) -> Counter[nn.Module | None]:
    """Count how often each layer is called in the forward passes that can be traced."""
    return Counter(
        forward.layer(node) for forward in editor.forward_passes for node in forward.nodes
    )


def _move_bias(layer: nn.Module, norm: _BatchNorm) -> None:
    """Take a layer's bias away from the mean that a batch norm expects."""
    bias = layer._parameters.get("bias")
    if bias is not None and norm.running_mean is not None:
        norm.running_mean.sub_(bias)


def _scale(layer: nn.Module, gain: Tensor) -> None:
    """Multiply the kernels of each output channel by its gain, in this layer only."""
    weight: nn.Parameter = layer.weight  # type: ignore[assignment]
    if isinstance(layer, _ConvTransposeNd):
        per_group = gain.reshape(layer.groups, 1, -1)
        grouped = weight.unflatten(0, (layer.groups, -1))
        shape = (*per_group.shape, *[1] * (weight.ndim - 2))
        scaled = (grouped * per_group.reshape(shape)).flatten(0, 1)
    else:
        scaled = weight * gain.reshape(-1, *[1] * (weight.ndim - 1))
    layer.weight = nn.Parameter(scaled, requires_grad=weight.requires_grad)
