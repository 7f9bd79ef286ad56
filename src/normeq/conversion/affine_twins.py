"""Affine layers with the weights of ordinary ones, projected onto their constraints."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from normeq.errors import UsageError
from normeq.nn import (
    AffineConv2d,
    AffineConvTranspose2d,
    AffineLinear,
    EquivariantAttention,
    constrain,
)
from normeq.nn.padding import COPY_MODES


def affine_linear(layer: nn.Module, free: int) -> nn.Module | None:
    """Return an affine layer with the projected weights of a linear one; None without counterpart.

    The last `free` channels of its input, which do not follow the offset, keep free weights.
    """
    if isinstance(layer, nn.Linear):
        dense = AffineLinear(layer.in_features, layer.out_features, free_channels=free)
        return _with_weight(dense, layer.weight)
    if isinstance(layer, nn.ConvTranspose2d):
        return _affine_upsampling(layer)
    if isinstance(layer, nn.ConvTranspose1d | nn.ConvTranspose3d):
        return _constrained_upsampling(layer)
    if not isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return None
    copies = layer.padding_mode in COPY_MODES
    if isinstance(layer, nn.Conv2d):
        mode: Any = layer.padding_mode if copies else "reflect"
        padding: Any = layer.padding
        conv = AffineConv2d(
            layer.in_channels,
            layer.out_channels,
            _pair(layer.kernel_size),
            _pair(layer.stride),
            padding,
            _pair(layer.dilation),
            layer.groups,
            padding_mode=mode,
            free_channels=free,
        )
        return _with_weight(conv, layer.weight)
    layer.register_parameter("bias", None)
    layer.padding_mode = layer.padding_mode if copies else "replicate"
    return constrain(layer, free_channels=free)


def _constrained_upsampling(layer: nn.ConvTranspose1d | nn.ConvTranspose3d) -> nn.Module | None:
    """Constrain a transposed convolution in place, if its kernels do not overlap."""
    bias: Any = layer.bias
    layer.register_parameter("bias", None)
    try:
        return constrain(layer)
    except UsageError:
        layer.register_parameter("bias", bias)
        return None


def _with_weight(layer: nn.Module, weight: Tensor) -> nn.Module:
    """Give a constrained layer a weight, which it projects onto its constraint."""
    layer = layer.to(weight)
    layer.weight = weight.detach()
    return layer


def _pair(numbers: tuple[int, ...]) -> tuple[int, int]:
    return numbers[0], numbers[1]


def _affine_upsampling(layer: nn.ConvTranspose2d) -> nn.Module | None:
    """Return an affine layer of the same output size as a transposed convolution's."""
    dense = all(dilation == 1 for dilation in layer.dilation)
    padding: Any = layer.padding
    if layer.stride == layer.kernel_size and dense and not any((*padding, *layer.output_padding)):
        size = _pair(layer.kernel_size)
        up = AffineConvTranspose2d(layer.in_channels, layer.out_channels, size, layer.groups)
        return _with_weight(up, layer.weight)
    grown = [
        size + extra - 2 * pad
        for size, extra, pad in zip(layer.kernel_size, layer.output_padding, padding, strict=True)
    ]
    if grown != list(layer.stride) or not dense:
        return None  # its output is not a whole multiple of its input
    # Kernels that overlap sum to something else in every phase: interpolate, then convolve.
    return nn.Sequential(
        nn.Upsample(scale_factor=tuple(float(step) for step in layer.stride)),
        AffineConv2d(layer.in_channels, layer.out_channels, 3, padding=1, groups=layer.groups),
    )


@torch.no_grad()
def affine_attention(layer: nn.MultiheadAttention) -> EquivariantAttention | None:
    """Return an equivariant attention with the projected weights of an ordinary one.

    None for the variants that have no counterpart: keys or values of other widths, extra tokens.
    """
    if layer.in_proj_weight is None or layer.bias_k is not None or layer.add_zero_attn:
        return None
    biased = layer.in_proj_bias is not None
    twin = EquivariantAttention(
        layer.embed_dim, layer.num_heads, bias=biased, batch_first=layer.batch_first
    )
    query, key, value = layer.in_proj_weight.chunk(3)
    for linear, weight in (
        (twin.query, query),
        (twin.key, key),
        (twin.value, value),
        (twin.output, layer.out_proj.weight),
    ):
        linear.weight = weight.clone()
    if twin.query_bias is not None and twin.key_bias is not None:
        query_bias, key_bias, _ = layer.in_proj_bias.chunk(3)
        twin.query_bias.copy_(query_bias)
        twin.key_bias.copy_(key_bias)
    return twin.to(layer.in_proj_weight)
