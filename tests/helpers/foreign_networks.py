"""Networks as users write them, to be converted."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class DoubleConv(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, inputs: int, outputs: int, bilinear: bool) -> None:
        super().__init__()
        if bilinear:
            self.up = nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                nn.Conv2d(inputs, outputs, 1),
            )
        else:
            self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = DoubleConv(2 * outputs, outputs)

    def forward(self, deep: Tensor, skip: Tensor) -> Tensor:
        deep = self.up(deep)
        rows, columns = skip.size(2) - deep.size(2), skip.size(3) - deep.size(3)
        deep = F.pad(deep, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([skip, deep], dim=1))


class UNet(nn.Module):
    """The U-Net with batch norm and biases that half the world copies."""

    def __init__(self, bilinear: bool = False) -> None:
        super().__init__()
        self.inc = DoubleConv(1, 6)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(6, 8))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 10))
        self.up1 = Up(10, 8, bilinear)
        self.up2 = Up(8, 6, bilinear)
        self.outc = nn.Conv2d(6, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


class ResNet(nn.Module):
    """Residual blocks written with functions, in-place additions and a scaled branch."""

    def __init__(self, act: str = "relu") -> None:
        super().__init__()
        self.head = nn.Conv2d(1, 6, 3, 1, 1, padding_mode="circular")
        self.first = nn.ModuleList(nn.Conv2d(6, 6, 3, padding="same") for _ in range(2))
        self.second = nn.ModuleList(nn.Conv2d(6, 6, 3, padding=2, dilation=2) for _ in range(2))
        self.up = nn.ConvTranspose2d(6, 6, 4, 2, 1)
        self.tail = nn.Conv2d(6, 1, 3, 2, 1)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        features = self.head(x)
        for first, second in zip(self.first, self.second, strict=True):
            inner = F.relu(first(features)) if self.act == "relu" else F.silu(first(features))
            features = features + 0.2 * F.dropout(second(inner), 0.1, self.training)
        features += self.head(x)
        return x - self.tail(self.up(features))


class Conditioned(nn.Module):
    """A denoiser that is told the noise level as one more channel."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1), nn.LeakyReLU(0.1), nn.Conv2d(6, 1, 3, padding=1)
        )

    def forward(self, x: Tensor, sigma: Tensor | None = None) -> Tensor:
        if sigma is None:
            sigma = torch.zeros(len(x))
        level = sigma.reshape(-1, 1, 1, 1).expand_as(x)
        return self.body(torch.cat((x, level), 1))


class Attentive(nn.Module):
    """Tokens mixed by torch's multi-head attention, or by the bare function."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.embed = nn.Conv2d(1, 8, 4, 4)
        self.mix = nn.Linear(8, 24) if fused else nn.MultiheadAttention(8, 2, batch_first=True)
        self.unembed = nn.ConvTranspose2d(8, 1, 4, 4)

    def forward(self, x: Tensor) -> Tensor:
        features = self.embed(x)
        tokens = features.flatten(2).transpose(1, 2)
        if self.fused:
            query, key, value = self.mix(tokens).chunk(3, -1)
            tokens = tokens + F.scaled_dot_product_attention(query, key, value)
        else:
            tokens = tokens + self.mix(tokens, tokens, tokens, need_weights=False)[0]
        return self.unembed(tokens.transpose(1, 2).reshape(features.shape))


class Tokenwise(nn.Module):
    """A layer on tokens, between two convolutions."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, 8, 4, 4)
        self.layer = layer
        self.unembed = nn.ConvTranspose2d(8, 1, 4, 4)

    def forward(self, x: Tensor) -> Tensor:
        features = self.embed(x)
        tokens = self.layer(features.flatten(2).transpose(1, 2))
        return self.unembed(tokens.transpose(1, 2).reshape(features.shape))


class Squared(nn.Module):
    """What no kernels can undo."""

    def forward(self, x: Tensor) -> Tensor:
        return x * x
