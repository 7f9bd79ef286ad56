"""FFDNet: a plain stack of convolutions on the image folded into four sub-images."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor
from torch.nn import functional as F

from normeq.models.building_blocks import Variant, conv_stack, fold_image
from normeq.models.denoising_network import DenoisingNetwork, SharedOptions
from normeq.models.reach import SpatialStep


class FFDNet(DenoisingNetwork):
    """A stack of 3x3 convolutions at half resolution, between pixel unshuffle and shuffle.

    Parameters
    ----------
    variant, shared
        See `DenoisingNetwork`.
    width
        Channels of the hidden layers.
    depth
        Number of convolutions.

    Examples
    --------
    >>> import torch
    >>> net = FFDNet("norm-equiv", takes_sigma="always", width=8, depth=4)
    >>> net(torch.rand(1, 1, 17, 23), sigma=0.1).shape
    torch.Size([1, 1, 17, 23])
    """

    architecture = "ffdnet"

    def __init__(
        self,
        variant: Variant,
        *,
        width: int = 64,
        depth: int = 15,
        **shared: Unpack[SharedOptions],
    ) -> None:
        super().__init__(variant, **shared)
        self.layers = conv_stack(
            self.build, 4 * self.channels, width, depth, self.maps, self.offsets
        )
        self._set_geometry(
            [SpatialStep("down", 2), *[SpatialStep("kernel", 1)] * depth, SpatialStep("up", 2)]
        )

    def transform(self, x: Tensor) -> Tensor:
        """Fold the image, apply the layers, unfold."""
        return F.pixel_shuffle(self.layers(fold_image(x, self.channels, 2)), 2)
