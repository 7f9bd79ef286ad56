"""Restormer: a U-shaped transformer whose attention is across channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize, pad

__all__ = ["Restormer"]


class Restormer(nn.Module):
    """Add to the image what a U-shaped transformer finds in it.

    As for Gaussian denoising in the original, no layer has a bias and layer normalisation
    divides by the deviation without subtracting the mean.

    Parameters
    ----------
    channels
        Channels of the image.
    width
        Channels at full resolution, doubled with every level; 48 in the original.
    blocks
        Transformer blocks of each level; 4, 6, 6, 8 in the original.
    heads
        Attention heads of each level.
    refinement
        Transformer blocks at full resolution after the decoder; 4 in the original.

    References
    ----------
    S. W. Zamir, A. Arora, S. Khan, M. Hayat, F. S. Khan and M.-H. Yang, "Restormer: efficient
    transformer for high-resolution image restoration", CVPR, 2022.

    Examples
    --------
    >>> import torch
    >>> Restormer()(torch.zeros(1, 1, 8, 9)).shape
    torch.Size([1, 1, 8, 9])
    """

    def __init__(
        self,
        channels: int = 1,
        width: int = 8,
        blocks: tuple[int, ...] = (1, 1, 1, 1),
        heads: tuple[int, ...] = (1, 2, 4, 8),
        refinement: int = 1,
    ) -> None:
        super().__init__()
        depths = len(blocks)
        widths = [width * 2**level for level in range(depths)]
        # The decoder's last level keeps the concatenated skip: twice the width at full resolution.
        decoded = [2 * width, *widths[1:]]
        self.multiple = 2 ** (depths - 1)
        self.embedding = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.encoder = nn.ModuleList(
            _stack(widths[level], heads[level], blocks[level]) for level in range(depths)
        )
        self.down = nn.ModuleList(_down(wide) for wide in widths[:-1])
        self.up = nn.ModuleList(_up(wide) for wide in decoded[1:])
        self.reduce = nn.ModuleList(
            nn.Conv2d(2 * widths[level], decoded[level], 1, bias=False) if level else nn.Identity()
            for level in range(depths - 1)
        )
        self.decoder = nn.ModuleList(
            _stack(decoded[level], heads[level], blocks[level]) for level in range(depths - 1)
        )
        self.refinement = _stack(decoded[0], heads[0], refinement)
        self.last = nn.Conv2d(decoded[0], channels, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Denoise images of shape ``(N, C, H, W)``; mirrored to whole coarsest pixels."""
        height, width = x.shape[2], x.shape[3]
        padded = pad(x, (0, -width % self.multiple, 0, -height % self.multiple), mode="reflect")
        features = self.encoder[0](self.embedding(padded))
        skips = []
        for down, encode in zip(self.down, self.encoder[1:], strict=True):
            skips.append(features)
            features = encode(down(features))
        for level in reversed(range(len(self.decoder))):
            features = torch.cat([self.up[level](features), skips[level]], 1)
            features = self.decoder[level](self.reduce[level](features))
        clean: Tensor = padded + self.last(self.refinement(features))
        return clean[:, :, :height, :width]


def _stack(width: int, heads: int, blocks: int) -> nn.Sequential:
    return nn.Sequential(*(_Block(width, heads) for _ in range(blocks)))


def _down(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(width, width // 2, 3, padding=1, bias=False), nn.PixelUnshuffle(2)
    )


def _up(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.PixelShuffle(2))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = _BiasFreeLayerNorm(width)
        self.attention = _ChannelAttention(width, heads)
        self.norm2 = _BiasFreeLayerNorm(width)
        self.feed_forward = _GatedFeedForward(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        mixed: Tensor = self.feed_forward(self.norm2(x))
        return x + mixed


class _BiasFreeLayerNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5) * self.weight


class _ChannelAttention(nn.Module):
    """Attention between channels, each a vector of unit length over all pixels."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.heads = heads
        self.qkv = nn.Sequential(
            nn.Conv2d(width, 3 * width, 1, bias=False),
            nn.Conv2d(3 * width, 3 * width, 3, padding=1, groups=3 * width, bias=False),
        )
        self.projection = nn.Conv2d(width, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).flatten(2).unflatten(1, (3, self.heads, -1)).unbind(1)
        logits = normalize(query, dim=-1) @ normalize(key, dim=-1).mT * self.temperature
        attended = (logits.softmax(-1) @ value).flatten(1, 2)
        projected: Tensor = self.projection(attended.unflatten(2, (x.shape[2], x.shape[3])))
        return projected


class _GatedFeedForward(nn.Module):
    def __init__(self, width: int, expansion: float = 2.66) -> None:
        super().__init__()
        hidden = int(width * expansion)
        self.expand = nn.Sequential(
            nn.Conv2d(width, 2 * hidden, 1, bias=False),
            nn.Conv2d(2 * hidden, 2 * hidden, 3, padding=1, groups=2 * hidden, bias=False),
        )
        self.project = nn.Conv2d(hidden, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, content = self.expand(x).chunk(2, 1)
        projected: Tensor = self.project(gelu(gate) * content)
        return projected
