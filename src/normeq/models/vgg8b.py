"""VGG8b: the classifier of the paper's appendix."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from normeq.errors import UsageError
from normeq.models.building_blocks import BuildingBlocks, Variant, blocks_for
from normeq.models.network import Network


class VGG8b(Network):
    """Convolutions with max pooling, then two dense layers.

    In the norm-equiv variants the scores follow the image, ``net(λ·x + μ) = λ·net(x) + μ``, so
    the label, their argmax, is invariant.

    Parameters
    ----------
    variant
        What the network is equivariant to, and how. The residual form needs an output of the
        image's shape and does not exist for classifiers.
    channels
        1 for gray images, 3 for colour.
    widths
        Channels of the six convolutions.
    hidden
        Width of the dense layer before the scores.
    classes
        Number of scores.
    image_size
        Height and width of the images.
    dropout
        Rate of dropout after each nonlinearity.

    Examples
    --------
    >>> import torch
    >>> net = VGG8b("norm-equiv", widths=(4, 4, 4, 4, 4, 4), hidden=8).eval()
    >>> net(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    architecture = "vgg8b"

    def __init__(
        self,
        variant: Variant,
        *,
        channels: int = 1,
        widths: Sequence[int] = (128, 256, 256, 512, 512, 512),
        hidden: int = 1024,
        classes: int = 10,
        image_size: int = 28,
        dropout: float = 0.1,
    ) -> None:
        if variant == "norm-equiv-residual":
            raise UsageError(
                "vgg8b has no 'norm-equiv-residual' variant: a classifier has no image to add to."
            )
        if len(widths) != 6 or image_size < 16:
            raise UsageError(
                f"vgg8b takes six widths and images of at least 16 pixels, not {tuple(widths)} "
                f"and {image_size}."
            )
        super().__init__(variant)
        self.channels = channels
        build = blocks_for(variant)
        layers: list[nn.Module] = []
        pooled = {1, 3, 4, 5}  # the convolutions that a pooling follows
        for index, width in enumerate(widths):
            conv = build.conv if index else build.first_conv
            before = widths[index - 1] if index else channels
            layers += [conv(before, width), *_activation(build, nn.BatchNorm2d(width), dropout)]
            if index in pooled:
                layers.append(nn.MaxPool2d(2))
        features = widths[-1] * (image_size // 16) ** 2
        self.layers = nn.Sequential(
            *layers,
            nn.Flatten(),
            build.linear(features, hidden),
            *_activation(build, nn.BatchNorm1d(hidden), dropout),
            build.linear(hidden, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of a batch ``(N, C, H, W)``."""
        out: Tensor = self.layers(x)
        return out


def _activation(build: BuildingBlocks, norm: nn.Module, dropout: float) -> list[nn.Module]:
    """Return a nonlinearity with batch norm before it, where there is one, and dropout after."""
    return [*([norm] if build.batch_norm else []), build.activation(), nn.Dropout(dropout)]
