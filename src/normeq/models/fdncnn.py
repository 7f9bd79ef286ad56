"""FDnCNN: a plain stack of convolutions."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from normeq.errors import UsageError
from normeq.models.building_blocks import Variant, conv_stack
from normeq.models.denoising_network import DenoisingNetwork, SharedOptions
from normeq.models.reach import SpatialStep


class FDnCNN(DenoisingNetwork):
    """The flexible DnCNN: 3x3 convolutions and nonlinearities, no down- or upsampling.

    Parameters
    ----------
    variant, shared
        See `DenoisingNetwork`.
    width
        Channels of the hidden layers.
    depth
        Number of convolutions.
    residual
        Whether the layers give the noise, which is subtracted from the image: a DnCNN. Only
        where nothing else is combined with the image: ordinary and scale-equiv.

    Examples
    --------
    >>> import torch
    >>> net = FDnCNN("norm-equiv", width=8, depth=4)
    >>> net(torch.rand(1, 1, 17, 23)).shape
    torch.Size([1, 1, 17, 23])
    """

    architecture = "fdncnn"

    def __init__(
        self,
        variant: Variant,
        *,
        width: int = 64,
        depth: int = 20,
        residual: bool = False,
        **shared: Unpack[SharedOptions],
    ) -> None:
        if residual and variant not in ("ordinary", "scale-equiv"):
            raise UsageError(
                f"fdncnn with residual=True cannot be {variant}: use 'norm-equiv-residual' "
                "without it."
            )
        super().__init__(variant, **shared)
        self.residual = residual
        self.layers = conv_stack(self.build, self.channels, width, depth, self.maps, self.offsets)
        self._set_geometry([SpatialStep("kernel", 1)] * depth)

    def transform(self, x: Tensor) -> Tensor:
        """Apply the layers one after the other."""
        out: Tensor = self.layers(x)
        return x[:, : self.channels] - out if self.residual else out
