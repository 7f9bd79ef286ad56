"""Fold batch norm, with its running statistics, into the layer before it."""

from __future__ import annotations

from collections import Counter
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvTransposeNd

from normeq.conversion.network_editor import NetworkEditor
from normeq.conversion.operations import class_name
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
    """Fold every batch norm that directly follows a linear layer; its shift is dropped."""
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
                _scale(layer, gain_of(norm))
                path = f"{forward.path}.{node.target}".lstrip(".")
                editor.replace(path, norm, nn.Identity(), f"folded into {class_name(layer)}")


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
