"""Residual U-Nets: our compact default, and the skeleton of DRUNet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Unpack

from torch import Tensor, nn
from torch.nn import functional as F

from normeq.errors import UsageError
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
        Residual blocks at each scale, on the way down and again on the way up. A list has a number
        for every stage in the order of computation: down the scales, the coarsest, up again.
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
        blocks: int | Sequence[int] = 2,
        unshuffle: int = 2,
        **shared: Unpack[SharedOptions],
    ) -> None:
        super().__init__(variant, **shared)
        build = self.build
        counts = blocks_by_stage(blocks, len(widths))
        gains = build.branch_gains(max(1, sum(counts)))
        folded = self.channels * unshuffle**2
        coarser = list(pairwise(widths))
        stages = iter(counts)

        def stage(width: int) -> list[nn.Module]:
            return [self.block(build, width, gains) for _ in range(next(stages))]

        self.unshuffle = unshuffle
        self.head = build.first_conv(folded, widths[0], self.maps, self.offsets)
        self.down = nn.ModuleList(
            nn.Sequential(*stage(fine), build.downsample(fine, coarse)) for fine, coarse in coarser
        )
        self.body = nn.Sequential(*stage(widths[-1]))
        self.up = nn.ModuleList(
            nn.Sequential(build.upsample(coarse, fine), *stage(fine))
            for fine, coarse in reversed(coarser)
        )
        self.skips = nn.ModuleList(build.residual() for _ in widths)
        self.tail = build.last_conv(widths[0], folded)
        self._set_geometry(_longest_path(counts, unshuffle))

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


def blocks_by_stage(blocks: int | Sequence[int], scales: int) -> list[int]:
    """Return the number of blocks of every stage, down the scales and up again.

    Examples
    --------
    >>> blocks_by_stage(4, scales=2)
    [4, 4, 4]
    >>> blocks_by_stage([2, 1], scales=2)
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: blocks has 2 numbers: for 2 scales use one, or a list of 3.
    """
    stages = 2 * scales - 1
    if not isinstance(blocks, Sequence):
        return [blocks] * stages
    if len(blocks) != stages:
        raise UsageError(
            f"blocks has {len(blocks)} numbers: for {scales} scales use one, or a list of {stages}."
        )
    return list(blocks)


def _longest_path(counts: Sequence[int], unshuffle: int) -> list[SpatialStep]:
    """List the spatial operations on the way through the coarsest scale."""
    conv = SpatialStep("kernel", 1)
    stages = [[conv] * (2 * count) for count in counts]
    descents = len(stages) // 2
    down = [step for stage in stages[:descents] for step in [*stage, SpatialStep("down", 2)]]
    up = [step for stage in stages[descents + 1 :] for step in [SpatialStep("up", 2), *stage]]
    return [
        SpatialStep("down", unshuffle),
        conv,
        *down,
        *stages[descents],
        *up,
        conv,
        SpatialStep("up", unshuffle),
    ]
