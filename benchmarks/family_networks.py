"""Small networks in the style of each family that people use today, written here."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import normeq
from normeq.reproduce.networks import Restormer, SwinIR


class GroupNormUNet(nn.Module):
    """A U-Net of two scales with group norm and SiLU, as in diffusion models."""

    def __init__(self, width: int = 8, attention: bool = False) -> None:
        super().__init__()
        self.fine = self._block(1, width)
        self.coarse = self._block(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.gate = AttentionGate(width) if attention else None
        self.merge = self._block(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def _block(self, inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(4, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(4, outputs),
            nn.SiLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        bottom, right = x.shape[-2] % 2, x.shape[-1] % 2
        padded = F.pad(x, (0, right, 0, bottom), mode="reflect")
        fine = self.fine(padded)
        coarse = self.up(self.coarse(F.max_pool2d(fine, 2)))
        skip = fine if self.gate is None else self.gate(fine, coarse)
        out: Tensor = self.out(self.merge(torch.cat((skip, coarse), 1)))
        return x + out[..., : x.shape[-2], : x.shape[-1]]


class AttentionGate(nn.Module):
    """The gate of attention U-Nets: features weighted by what the coarser scale sees."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.weight = nn.Conv2d(width, 1, 1)

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        return fine * torch.sigmoid(self.weight(F.relu(self.query(fine) + self.key(coarse))))


class ChannelNorm(nn.Module):
    """Layer norm over channels, as in NAFNet and ConvNeXt."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(fill(width)) for fill in (torch.ones, torch.zeros))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        normal = (x - mean) / torch.sqrt(variance + 1e-6)
        return normal * self.weight[:, None, None] + self.bias[:, None, None]


class NAFBlock(nn.Module):
    """Simple gates and simplified channel attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = ChannelNorm(width)
        self.widen = nn.Conv2d(width, 2 * width, 1)
        self.spatial = nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width)
        self.attention = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width, 1))
        self.narrow = nn.Conv2d(width, width, 1)
        self.beta = nn.Parameter(torch.full((1, width, 1, 1), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.spatial(self.widen(self.norm(x))).chunk(2, 1)
        gated = a * b
        out: Tensor = x + self.beta * self.narrow(gated * self.attention(gated))
        return out


class ResponseNorm(nn.Module):
    """Global response normalization, as in ConvNeXt V2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma, self.beta = (nn.Parameter(0.1 * torch.ones(1, width, 1, 1)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        size = torch.linalg.vector_norm(x, dim=(2, 3), keepdim=True)
        return self.gamma * (x * size / (size.mean(1, keepdim=True) + 1e-6)) + self.beta + x


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution, layer norm, GELU and response norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = ChannelNorm(width)
        self.widen, self.narrow = nn.Conv2d(width, 4 * width, 1), nn.Conv2d(4 * width, width, 1)
        self.bend, self.response = nn.GELU(), ResponseNorm(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.narrow(self.response(self.bend(self.widen(self.norm(self.spatial(x))))))
        return x + out


class MixerBlock(nn.Module):
    """Dense layers over patches, then over channels."""

    def __init__(self, width: int, patches: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.over_patches = nn.Sequential(nn.Linear(patches, patches), nn.GELU())
        self.over_channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(),
                                           nn.Linear(2 * width, width))  # fmt: skip

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.over_patches(self.norms[0](tokens).mT).mT
        out: Tensor = tokens + self.over_channels(self.norms[1](tokens))
        return out


class Mixer(nn.Module):
    """An MLP-Mixer on 16 x 16 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.unembed = nn.Conv2d(1, 16, 4, 4), nn.ConvTranspose2d(16, 1, 4, 4)
        self.blocks = nn.Sequential(MixerBlock(16, 16), MixerBlock(16, 16))

    def forward(self, x: Tensor) -> Tensor:
        features = self.embed(x)
        tokens = self.blocks(features.flatten(2).mT)
        out: Tensor = self.unembed(tokens.mT.reshape(features.shape))
        return out


class Residual(nn.Module):
    """Add what a branch makes of its input."""

    def __init__(self, *branch: nn.Module) -> None:
        super().__init__()
        self.branch = nn.Sequential(*branch)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.branch(x)
        return out


def conv_tasnet() -> nn.Module:
    """Build dilated convolutions of a signal, with global layer norm and PReLU."""

    def block(dilation: int) -> nn.Module:
        spatial = nn.Conv1d(16, 16, 3, padding=dilation, dilation=dilation, groups=16)
        return Residual(
            nn.Conv1d(8, 16, 1), nn.PReLU(), nn.GroupNorm(1, 16), spatial, nn.PReLU(),
            nn.GroupNorm(1, 16), nn.Conv1d(16, 8, 1),
        )  # fmt: skip

    return nn.Sequential(
        nn.Conv1d(1, 8, 4, 2, 1), block(1), block(2), block(4), nn.ConvTranspose1d(8, 1, 4, 2, 1)
    )


def segresnet() -> nn.Module:
    """Build a network of volumes with pre-activated residual blocks, as in medical imaging."""

    def block(width: int) -> nn.Module:
        return Residual(
            nn.GroupNorm(4, width), nn.ReLU(), nn.Conv3d(width, width, 3, padding=1),
            nn.GroupNorm(4, width), nn.ReLU(), nn.Conv3d(width, width, 3, padding=1),
        )  # fmt: skip

    return nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1), block(8), nn.Conv3d(8, 8, 3, 2, 1), block(8),
        nn.Upsample(scale_factor=2, mode="trilinear"), nn.Conv3d(8, 1, 1),
    )  # fmt: skip


def unet_3d() -> nn.Module:
    """Build a network of volumes at two scales with batch norm and transposed convolutions."""
    return nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.Conv3d(8, 8, 2, 2),
        nn.BatchNorm3d(8), nn.ReLU(), nn.ConvTranspose3d(8, 8, 2, 2), nn.ReLU(), nn.Conv3d(8, 1, 1),
    )  # fmt: skip


class AuthorsPadding(nn.Module):
    """A network around which images are padded with their mean, as the paper's authors do."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.size()[-2:]
        bottom = int(np.ceil(height / 8) * 8 - height)
        right = int(np.ceil(width / 8) * 8 - width)
        x = F.pad(x, (0, right, 0, bottom), mode="constant", value=float(x.mean()))
        out: Tensor = self.net(x)[..., :height, :width]
        return out


def drunet(variant: str) -> nn.Module:
    """Build the DRUNet of this package in the authors' padding."""
    return AuthorsPadding(normeq.create("drunet", variant, widths=(8, 8, 8, 8), blocks=1))


def _between(*blocks: nn.Module) -> nn.Module:
    first, last = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 1, 3, padding=1)
    return Residual(first, *blocks, last)


#: Each family: what makes a network, and the shape of an example (None: made up by certify).
FAMILIES = {
    "U-Net, group norm": (GroupNormUNet, None),
    "attention U-Net": (lambda: GroupNormUNet(attention=True), None),
    "NAFNet": (lambda: _between(NAFBlock(8), NAFBlock(8)), None),
    "ConvNeXt": (lambda: _between(ConvNeXtBlock(8), ConvNeXtBlock(8)), None),
    "SwinIR": (lambda: SwinIR(groups=1, layers=2), (1, 1, 16, 16)),
    "Restormer": (lambda: Restormer(blocks=(1, 1), heads=(1, 2)), (1, 1, 16, 16)),
    "Mixer": (Mixer, (1, 1, 16, 16)),
    "Conv-TasNet": (conv_tasnet, (1, 1, 64)),
    "U-Net, 3-D": (unet_3d, (1, 1, 8, 8, 8)),
    "SegResNet": (segresnet, (1, 1, 8, 8, 8)),
    "DRUNet, authors' padding": (lambda: drunet("norm-equiv"), None),
    "DRUNet, scale-equivariant": (lambda: drunet("scale-equiv"), None),
}
