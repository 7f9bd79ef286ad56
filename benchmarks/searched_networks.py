"""Networks that the search for better training tries beside the shipped one.

All are homogeneous behind kernels that sum to zero (variant ``norm-equiv-residual``), so they are
normalization-equivariant as the shipped network is. They differ in the block that each scale is
made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from normeq.models import UNet, register
from normeq.models.building_blocks import BuildingBlocks, ResidualBlock
from normeq.models.reach import SpatialStep

KERNEL = 3
# Of a gated block, channels behind the gate for each channel of the scale.
EXPANSION = 2
# Of channel attention, how many times fewer channels there are between its two layers.
SQUEEZE = 4
TINY = 1e-9


class Gate(nn.Module):
    """``gate(λ·x) = λ·gate(x)``: one half of the channels, weighted by what the other half says."""

    def forward(self, x: Tensor) -> Tensor:
        value, control = x.chunk(2, 1)
        size = (control.square().mean(1, keepdim=True) + TINY**2).sqrt()
        return value * torch.sigmoid(2 * control / size)


class GatedBlock(nn.Module):
    """Expansion, depthwise kernels, a gate that does not depend on the scale, contraction."""

    def __init__(self, build: BuildingBlocks, width: int, gains: tuple[float, float]) -> None:
        super().__init__()
        wide = 2 * EXPANSION * width
        depthwise = nn.Conv2d(wide, wide, KERNEL, padding=KERNEL // 2, groups=wide, bias=False)
        nn.init.dirac_(depthwise.weight, groups=wide)
        self.branch = nn.Sequential(
            build.conv(width, wide, 1, gains[0]),
            depthwise,
            Gate(),
            build.conv(EXPANSION * width, width, 1, gains[1]),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.branch(x)
        return out


class ChannelAttention(nn.Module):
    """``f(λ·x) = λ·f(x)``: channels weighted by how strong each is in the whole image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.Conv2d(width, width // SQUEEZE, 1),
            nn.ReLU(),
            nn.Conv2d(width // SQUEEZE, width, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        strength = x.abs().mean((2, 3), keepdim=True)
        relative = strength / (strength.mean(1, keepdim=True) + TINY)
        return 2 * x * self.weights(relative)


class AttentionBlock(nn.Module):
    """A residual block whose branch ends with channel attention."""

    def __init__(self, build: BuildingBlocks, width: int, gains: tuple[float, float]) -> None:
        super().__init__()
        plain = ResidualBlock(build, width, gains)
        self.branch = nn.Sequential(*plain.branch, ChannelAttention(width))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.branch(x)
        return out


class SearchedUNet(UNet):
    """A U-Net of other blocks: what `UNet` knows of the reach of its kernels does not hold."""

    def _set_geometry(self, path: Sequence[SpatialStep]) -> None:
        super()._set_geometry(path)
        self.receptive_field = None


class GatedUNet(SearchedUNet):
    """A U-Net of gated blocks with depthwise kernels."""

    architecture = "unet-gated"
    block = GatedBlock


class AttentionUNet(SearchedUNet):
    """A U-Net with attention over channels, which sees the whole image."""

    architecture = "unet-attention"
    block = AttentionBlock


register(GatedUNet)
register(AttentionUNet)
