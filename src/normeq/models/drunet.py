"""DRUNet: the paper's main network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from normeq.models.building_blocks import Variant
from normeq.models.denoising_network import SharedOptions
from normeq.models.unet import UNet


class DRUNet(UNet):
    """A U-Net of four scales with four residual blocks each, on the image itself.

    Parameters
    ----------
    variant, shared
        See `DenoisingNetwork`.
    widths
        Channels at each scale, the finest first.
    blocks
        Residual blocks at each scale, on the way down and again on the way up. A list has a number
        for every stage in the order of computation: down the scales, the coarsest, up again.

    Examples
    --------
    >>> import torch
    >>> net = DRUNet("norm-equiv", widths=(4, 8), blocks=1)
    >>> net(torch.rand(1, 1, 17, 23)).shape
    torch.Size([1, 1, 17, 23])
    """

    architecture = "drunet"

    def __init__(
        self,
        variant: Variant,
        *,
        widths: Sequence[int] = (64, 128, 256, 512),
        blocks: int | Sequence[int] = 4,
        **shared: Unpack[SharedOptions],
    ) -> None:
        super().__init__(variant, widths=widths, blocks=blocks, unshuffle=1, **shared)
