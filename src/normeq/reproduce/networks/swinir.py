"""SwinIR: self-attention in windows that are shifted from layer to layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

__all__ = ["SwinIR"]


class SwinIR(nn.Module):
    """Add to the image what residual groups of window transformers find in it.

    Parameters
    ----------
    channels
        Channels of the image.
    width
        Channels of the tokens; 180 in the original.
    groups
        Residual groups; 6 in the original.
    layers
        Transformer layers in a group; 6 in the original.
    heads
        Attention heads; 6 in the original.
    window
        Side of the windows; 8 in the original.

    References
    ----------
    J. Liang, J. Cao, G. Sun, K. Zhang, L. Van Gool and R. Timofte, "SwinIR: image restoration
    using Swin transformer", ICCV workshops, 2021.

    Examples
    --------
    >>> import torch
    >>> SwinIR()(torch.zeros(1, 1, 8, 9)).shape
    torch.Size([1, 1, 8, 9])
    """

    def __init__(
        self,
        channels: int = 1,
        width: int = 12,
        groups: int = 2,
        layers: int = 2,
        heads: int = 2,
        window: int = 4,
    ) -> None:
        super().__init__()
        self.window = window
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.embedding = nn.LayerNorm(width)
        self.groups = nn.ModuleList(_Group(width, layers, heads, window) for _ in range(groups))
        self.norm = nn.LayerNorm(width)
        self.after_body = nn.Conv2d(width, width, 3, padding=1)
        self.last = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Denoise images of shape ``(N, C, H, W)``; mirrored to a multiple of the window."""
        height, width = x.shape[2], x.shape[3]
        padded = pad(x, (0, -width % self.window, 0, -height % self.window), mode="reflect")
        shallow = self.first(padded)
        tokens = self.embedding(shallow.permute(0, 2, 3, 1))
        for group in self.groups:
            tokens = group(tokens)
        deep = self.after_body(self.norm(tokens).permute(0, 3, 1, 2)) + shallow
        clean: Tensor = padded + self.last(deep)
        return clean[:, :, :height, :width]


class _Group(nn.Module):
    """Transformer layers and a convolution, added to what came in; tokens are channels-last."""

    def __init__(self, width: int, layers: int, heads: int, window: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(
                _Layer(width, heads, window, shift=window // 2 if index % 2 else 0)
                for index in range(layers)
            )
        )
        self.convolution = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = self.convolution(self.layers(tokens).permute(0, 3, 1, 2))
        return tokens + mixed.permute(0, 2, 3, 1)


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int, window: int, shift: int) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1 = nn.LayerNorm(width)
        self.attention = _WindowAttention(width, heads, window)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        height, width = tokens.shape[1], tokens.shape[2]
        shifted = self.norm1(tokens).roll((-self.shift, -self.shift), (1, 2))
        windows = _partition(shifted, self.window)
        mask = _mask(height, width, self.window, self.shift).to(tokens)
        attended = _merge(self.attention(windows, mask), self.window, height, width)
        tokens = tokens + attended.roll((self.shift, self.shift), (1, 2))
        mixed: Tensor = self.mlp(self.norm2(tokens))
        return tokens + mixed


class _WindowAttention(nn.Module):
    """Self-attention within a window, with a learned bias for each relative position."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.position_bias = nn.Parameter(0.02 * torch.randn((2 * window - 1) ** 2, heads))
        position = torch.cartesian_prod(torch.arange(window), torch.arange(window))
        down, right = (position[:, None] - position + window - 1).unbind(-1)
        self.register_buffer("relative", down * (2 * window - 1) + right, persistent=False)
        self.relative: Tensor

    def forward(self, windows: Tensor, mask: Tensor) -> Tensor:
        """Attend within windows ``(N, windows, pixels, C)``; the mask is added to the logits."""
        heads = self.qkv(windows).unflatten(-1, (3, self.heads, -1)).transpose(2, 4)
        query, key, value = heads.unbind(3)
        logits = query @ key.mT / query.shape[-1] ** 0.5
        logits = logits + self.position_bias[self.relative].permute(2, 0, 1) + mask[:, None]
        attended = (logits.softmax(-1) @ value).transpose(2, 3).flatten(3)
        projected: Tensor = self.projection(attended)
        return projected


def _partition(tokens: Tensor, window: int) -> Tensor:
    """Cut ``(N, H, W, C)`` into windows ``(N, windows, pixels, C)``."""
    rows, columns = tokens.shape[1] // window, tokens.shape[2] // window
    cells: Tensor = tokens.unflatten(2, (columns, window)).unflatten(1, (rows, window))
    return cells.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _merge(windows: Tensor, window: int, height: int, width: int) -> Tensor:
    """Undo `_partition`."""
    cells: Tensor = windows.unflatten(2, (window, window))
    cells = cells.unflatten(1, (height // window, width // window))
    return cells.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _mask(height: int, width: int, window: int, shift: int) -> Tensor:
    """Logits that part pixels which only the roll has made neighbours: ``(windows, p, p)``."""
    region = torch.zeros(1, height, width, 1)
    if shift:
        region[:, -window:] += 1.0
        region[:, -shift:] += 1.0
        region[:, :, -window:] += 3.0
        region[:, :, -shift:] += 3.0
    region = _partition(region, window)[0]
    return (region != region.mT) * -100.0
