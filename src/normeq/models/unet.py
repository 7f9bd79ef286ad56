"""Residual U-Nets: our compact default, and the skeleton of DRUNet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Unpack

from torch import Tensor, nn
from torch.nn import functional as F

from normeq.models.building_blocks import ResidualBlock, Variant, fold_image
from normeq.models.denoising_network import DenoisingNetwork, SharedOptions
from normeq.models.reach import SpatialStep


class UNet(DenoisingNetwork):
    """A U-Net of residual blocks on the pixel-unshuffled image.

    Parameters
    ----------
    variant, shared
        See `DenoisingNetwork`.
    widths
        Channels at each scale, the finest first.
    blocks
        Residual blocks at each scale, on the way down and again on the way up.
    unshuffle
        The factor by which the image is folded into channels before the first convolution.

    Examples
    --------
    >>> import torch
    >>> net = UNet("norm-equiv-residual", widths=(8, 16), blocks=1)
    >>> net(torch.rand(1, 1, 17, 23)).shape
    torch.Size([1, 1, 17, 23])
    """

    architecture = "unet"
    #: What a scale is made of, as a class with the arguments of `ResidualBlock`.
    block: ClassVar[type[nn.Module]] = ResidualBlock

    def __init__(
        self,
        variant: Variant,
        *,
        widths: Sequence[int] = (32, 64, 128),
        blocks: int = 2,
        unshuffle: int = 2,
        **shared: Unpack[SharedOptions],
    ) -> None:
        super().__init__(variant, **shared)
        build = self.build
        gains = build.branch_gains(blocks * (2 * len(widths) - 1))
        folded = self.channels * unshuffle**2
        coarser = list(pairwise(widths))

        def scale(width: int) -> list[nn.Module]:
            return [self.block(build, width, gains) for _ in range(blocks)]

        self.unshuffle = unshuffle
        self.head = build.first_conv(folded, widths[0], self.maps, self.offsets)
        self.down = nn.ModuleList(
            nn.Sequential(*scale(fine), build.downsample(fine, coarse)) for fine, coarse in coarser
        )
        self.body = nn.Sequential(*scale(widths[-1]))
        self.up = nn.ModuleList(
            nn.Sequential(build.upsample(coarse, fine), *scale(fine))
            for fine, coarse in reversed(coarser)
        )
        self.skips = nn.ModuleList(build.residual() for _ in widths)
        self.tail = build.last_conv(widths[0], folded)
        self._set_geometry(_longest_path(len(coarser), blocks, unshuffle))

    def transform(self, x: Tensor) -> Tensor:
        """Fold the image, go down and up the scales, unfold."""
        x = self.head(fold_image(x, self.channels, self.unshuffle))
        encoded = [x]
        for down in self.down:
            encoded.append(down(encoded[-1]))
        x = self.body(encoded[-1])
        # Decoder features meet those of the encoder, the deepest first.
        x = self.skips[0](x, encoded.pop())
        for up, skip in zip(self.up, self.skips[1:], strict=True):
            x = skip(up(x), encoded.pop())
        return F.pixel_shuffle(self.tail(x), self.unshuffle)


def _longest_path(descents: int, blocks: int, unshuffle: int) -> list[SpatialStep]:
    """List the spatial operations on the way through the coarsest scale."""
    conv = SpatialStep("kernel", 1)
    scale = [conv] * (2 * blocks)
    down = [*scale, SpatialStep("down", 2)] * descents
    up = [SpatialStep("up", 2), *scale] * descents
    return [
        SpatialStep("down", unshuffle),
        conv,
        *down,
        *scale,
        *up,
        conv,
        SpatialStep("up", unshuffle),
    ]
