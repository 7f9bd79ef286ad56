"""The equivariant counterpart of torch's multi-head attention."""

from __future__ import annotations

import torch
from torch import nn

from normeq.nn import EquivariantAttention


@torch.no_grad()
def equivariant_from(layer: nn.MultiheadAttention) -> EquivariantAttention | None:
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
