"""Attention whose weights see neither gain nor offset, over values that follow both."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.errors import UsageError
from normeq.nn.affine_layers import AffineLinear
from normeq.nn.constraint import constrain


def ratios(differences: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Divide by the root mean square over some axes: ``ratios(λ·x) = ratios(x)``, and 0/0 = 0.

    Examples
    --------
    >>> import torch
    >>> ratios(torch.tensor([[3.0, -3.0], [0.0, 0.0]]), (1,))
    tensor([[ 1., -1.],
            [ 0.,  0.]])
    """
    power = differences.square().mean(dims, keepdim=True)
    # Infinity stands in for zero: its inverse root is 0, and unlike 1 it sets no scale.
    return differences * torch.where(power == 0, math.inf, power).rsqrt()


def equivariant_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **options: Any,
) -> Tensor:
    """Attend by ratios: ``a(λ·q + μ, λ·k + μ, λ·v + μ) = λ·a(q, k, v) + μ``.

    The counterpart of `torch.nn.functional.scaled_dot_product_attention` for features that
    follow gain and offset. Queries and keys are reduced to differences between their channels,
    divided by the spread of these over all tokens; the softmax of their products gives weights
    that see neither gain nor offset and add up to one, so the weighted means of the values
    follow both.

    Parameters
    ----------
    query, key, value, attn_mask, is_causal, scale, options
        As there.
    dropout_p
        Must be 0: weights that are dropped no longer add up to one.

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.rand(3, 1, 5, 4, dtype=torch.float64)
    >>> moved = equivariant_attention(*(7 * x + 1000 for x in (q, k, v)))
    >>> torch.allclose(moved, 7 * equivariant_attention(q, k, v) + 1000)
    True
    """
    if dropout_p:
        raise UsageError(
            f"dropout_p={dropout_p:g} leaves weights that do not add up to one: use 0."
        )
    differences = (x - x.mean(-1, keepdim=True) for x in (query, key))
    q, k = (ratios(x, (-2, -1)) for x in differences)
    attended: Tensor = F.scaled_dot_product_attention(
        q, k, value, attn_mask, is_causal=is_causal, scale=scale, **options
    )
    return attended


class EquivariantAttention(nn.Module):
    """Multi-head attention over affine features: ``a(λ·x + μ) = λ·a(x) + μ``.

    Queries and keys are differences of the features (rows that sum to zero), divided by their
    root mean square over all tokens of a sample; to these ratios a bias may be added. Values and
    outputs are affine combinations (rows that sum to one), and the softmax's weights add up to
    one. Called like `torch.nn.MultiheadAttention`, whose place it can take.

    Parameters
    ----------
    embed_dim
        Features of each token.
    num_heads
        How many heads share them.
    bias
        Whether ratios get a trainable bias before they are multiplied.
    batch_first
        Whether tokens come as ``(N, L, C)`` rather than ``(L, N, C)``.

    Examples
    --------
    >>> import torch
    >>> attention = EquivariantAttention(8, 2).double()
    >>> x = torch.rand(1, 5, 8, dtype=torch.float64)
    >>> moved, _ = attention(*[7 * x + 1000] * 3)
    >>> torch.allclose(moved, 7 * attention(x, x, x)[0] + 1000)
    True
    """

    query_bias: nn.Parameter | None
    key_bias: nn.Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, *, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise UsageError(f"embed_dim={embed_dim} is not a multiple of num_heads={num_heads}.")
        self.num_heads = num_heads
        self.batch_first = batch_first
        self.query = constrain(nn.Linear(embed_dim, embed_dim, bias=False), 0.0)
        self.key = constrain(nn.Linear(embed_dim, embed_dim, bias=False), 0.0)
        self.value = AffineLinear(embed_dim, embed_dim)
        self.output = AffineLinear(embed_dim, embed_dim)
        for name in ("query_bias", "key_bias"):
            self.register_parameter(name, nn.Parameter(torch.zeros(embed_dim)) if bias else None)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        """Attend; masks and `is_causal` are understood, as in torch, and weights never returned."""
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q = self._ratios(self.query(query), self.query_bias)
        k = self._ratios(self.key(key), self.key_bias)
        v = self._split(self.value(value))
        mask = self._joined(attn_mask, key_padding_mask, like=q)
        causal = is_causal and mask is None  # beside a mask it is a hint
        attended = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        out: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return (out if self.batch_first else out.transpose(0, 1)), None

    def _joined(self, mask: Tensor | None, padding: Tensor | None, like: Tensor) -> Tensor | None:
        """Join a mask of queries and keys and one of keys into one that is added to products."""
        parts = []
        if mask is not None:
            heads = (-1, self.num_heads) if mask.ndim == 3 else None
            parts.append(_added(mask, like).unflatten(0, heads) if heads else _added(mask, like))
        if padding is not None:
            parts.append(_added(padding, like)[:, None, None, :])
        return torch.stack(torch.broadcast_tensors(*parts)).sum(0) if parts else None

    def _ratios(self, differences: Tensor, bias: Tensor | None) -> Tensor:
        free_of_scale = ratios(differences, (1, 2))
        return self._split(free_of_scale if bias is None else free_of_scale + bias)

    def _split(self, tokens: Tensor) -> Tensor:
        """Bring ``(N, L, C)`` to ``(N, heads, L, C/heads)``."""
        heads: Tensor = tokens.unflatten(-1, (self.num_heads, -1))
        return heads.transpose(1, 2)


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """Return what a mask adds to products: minus infinity where it is True."""
    if mask.dtype != torch.bool:
        return mask.to(like)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)
