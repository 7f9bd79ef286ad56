"""DRUNet: the paper's main network."""

from __future__ import annotations

from collections.abc import Sequence

from normeq.models.building_blocks import Variant
from normeq.models.noise_maps import TakesSigma
from normeq.models.unet import UNet


class DRUNet(UNet):
    """A U-Net of four scales with four residual blocks each, on the image itself.

    Parameters
    ----------
    variant, takes_sigma, takes_correlation, channels, separate_channels, telescoped
        See `DenoisingNetwork`.
    widths
        Channels at each scale, the finest first.
    blocks
        Residual blocks at each scale, on the way down and again on the way up.

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
        takes_sigma: TakesSigma = "never",
        takes_correlation: bool = False,
        channels: int = 1,
        separate_channels: bool = False,
        widths: Sequence[int] = (64, 128, 256, 512),
        blocks: int = 4,
        telescoped: bool = False,
    ) -> None:
        super().__init__(
            variant,
            takes_sigma=takes_sigma,
            takes_correlation=takes_correlation,
            channels=channels,
            separate_channels=separate_channels,
            widths=widths,
            blocks=blocks,
            unshuffle=1,
            telescoped=telescoped,
        )
