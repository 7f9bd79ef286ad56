"""What networks are built from: layers for each variant, so that a network is written once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.errors import UsageError
from normeq.nn import (
    AffineConv2d,
    AffineConvTranspose2d,
    AffineLinear,
    AffineResidual,
    SortPool,
    ZeroSumConv2d,
    init_spread_,
)
from normeq.nn.constraint import Method

Variant = Literal[
    "ordinary", "scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"
]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


class BuildingBlocks(ABC):
    """The layers of one variant.

    Spatial sizes are kept: convolutions pad by half their kernel, except strided ones, whose
    kernel is their stride.
    """

    #: Whether the network's input is added to its output.
    adds_input = False
    #: Whether normalisation layers have a place in this variant.
    batch_norm = False

    @abstractmethod
    def conv(self, inputs: int, outputs: int, kernel: int = 3, gain: float = 1.0) -> nn.Module:
        """Return a convolution of features that starts with weights scaled by `gain`."""

    @abstractmethod
    def first_conv(self, inputs: int, outputs: int, maps: int = 0, parts: int = 1) -> nn.Module:
        """Return the convolution that sees the image and, as trailing channels, noise maps.

        The channels of the image fall into equal parts, each with an offset of its own.
        """

    @abstractmethod
    def last_conv(self, inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
        """Return the convolution that gives the output."""

    @abstractmethod
    def downsample(self, inputs: int, outputs: int) -> nn.Module:
        """Return a convolution of kernel and stride 2."""

    @abstractmethod
    def upsample(self, inputs: int, outputs: int) -> nn.Module:
        """Return a transposed convolution of kernel and stride 2."""

    @abstractmethod
    def linear(self, inputs: int, outputs: int) -> nn.Module:
        """Return a dense layer."""

    @abstractmethod
    def activation(self) -> nn.Module:
        """Return the nonlinearity."""

    @abstractmethod
    def residual(self) -> nn.Module:
        """Return what joins two branches: called with both."""

    @abstractmethod
    def branch_gains(self, branches: int) -> tuple[float, float]:
        """Return the gains of the two convolutions of a residual branch.

        They keep the spread of features the same through all `branches` of the network.
        """


class Add(nn.Module):
    """The ordinary residual connection."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Return ``a + b``."""
        return a + b


class PlainBlocks(BuildingBlocks):
    """Zero-padded convolutions and ReLU, with biases (ordinary) or without (scale-equivariant).

    With `sort`, sort pooling takes the place of ReLU: it scales as well, and never dies.
    """

    def __init__(self, bias: bool, sort: bool = False) -> None:
        self.bias = bias
        self.batch_norm = bias
        self.sort = sort

    def conv(self, inputs: int, outputs: int, kernel: int = 3, gain: float = 1.0) -> nn.Module:
        conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=self.bias)
        return _he_init(conv, inputs * kernel**2, gain)

    def first_conv(self, inputs: int, outputs: int, maps: int = 0, parts: int = 1) -> nn.Module:
        return self.conv(inputs + maps, outputs)

    def last_conv(self, inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
        return self.conv(inputs, outputs, kernel, gain=math.sqrt(0.5))

    def downsample(self, inputs: int, outputs: int) -> nn.Module:
        conv = nn.Conv2d(inputs, outputs, 2, stride=2, bias=self.bias)
        return _he_init(conv, inputs * 4, math.sqrt(0.5))

    def upsample(self, inputs: int, outputs: int) -> nn.Module:
        conv = nn.ConvTranspose2d(inputs, outputs, 2, stride=2, bias=self.bias)
        return _he_init(conv, inputs, math.sqrt(0.5))

    def linear(self, inputs: int, outputs: int) -> nn.Module:
        return _he_init(nn.Linear(inputs, outputs, bias=self.bias), inputs, 1.0)

    def activation(self) -> nn.Module:
        return SortPool() if self.sort else nn.ReLU()

    def residual(self) -> nn.Module:
        return Add()

    def branch_gains(self, branches: int) -> tuple[float, float]:
        # Shared by both: kernels that start small are soon forgotten, and training is faster.
        # Sorting keeps the energy of features, of which ReLU keeps half.
        gain = (4 * branches if self.sort else 2 * branches) ** -0.25
        return gain, gain


class DifferenceBlocks(PlainBlocks):
    """The residual form ``y + g(Dy)``: first kernels sum to zero, then bias-free ReLU layers."""

    adds_input = True

    def __init__(self, sort: bool = False) -> None:
        super().__init__(bias=False, sort=sort)

    def first_conv(self, inputs: int, outputs: int, maps: int = 0, parts: int = 1) -> nn.Module:
        return ZeroSumConv2d(inputs + maps, outputs, 3, padding=1, free_channels=maps, parts=parts)

    def last_conv(self, inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
        # The output is a correction of the image, small beside it.
        return self.conv(inputs, outputs, kernel, gain=0.1)


class AffineBlocks(BuildingBlocks):
    """The affine form: kernels that sum to one, sort pooling, affine residuals, copy padding.

    With `telescoped`, kernels are parametrized and drawn as in the paper: learning is slower.
    """

    def __init__(self, telescoped: bool = False) -> None:
        self.telescoped = telescoped
        self.method: Method = "telescope" if telescoped else "project"

    def conv(self, inputs: int, outputs: int, kernel: int = 3, gain: float = 1.0) -> nn.Module:
        conv = AffineConv2d(inputs, outputs, kernel, padding=kernel // 2, method=self.method)
        init_spread_(conv, gain)
        return self._drawn(conv, inputs * kernel**2)

    def first_conv(self, inputs: int, outputs: int, maps: int = 0, parts: int = 1) -> nn.Module:
        conv = AffineConv2d(
            inputs + maps, outputs, 3, padding=1, free_channels=maps, method=self.method
        )
        return self._drawn(conv, (inputs + maps) * 9)

    def last_conv(self, inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
        return self.conv(inputs, outputs, kernel)

    def downsample(self, inputs: int, outputs: int) -> nn.Module:
        conv = AffineConv2d(inputs, outputs, 2, stride=2, method=self.method)
        return self._drawn(conv, inputs * 4)

    def upsample(self, inputs: int, outputs: int) -> nn.Module:
        return self._drawn(AffineConvTranspose2d(inputs, outputs, 2, method=self.method), inputs)

    def linear(self, inputs: int, outputs: int) -> nn.Module:
        return self._drawn(AffineLinear(inputs, outputs, method=self.method), inputs)

    def activation(self) -> nn.Module:
        return SortPool()

    def residual(self) -> nn.Module:
        return AffineResidual()

    def branch_gains(self, branches: int) -> tuple[float, float]:
        # (x + branch)/2 keeps the variance of x if that of the branch is three times as large.
        return 1.0, math.sqrt(3)

    def _drawn(self, layer: nn.Module, fan_in: int) -> nn.Module:
        """Draw what is telescoped as torch draws the weights of a layer."""
        if self.telescoped:
            bound = 1 / math.sqrt(fan_in)
            nn.init.uniform_(next(layer.parameters()), -bound, bound)
        return layer


def blocks_for(variant: Variant, sort: bool = False, telescoped: bool = False) -> BuildingBlocks:
    """Return what a variant is built from; a wrapped network is an ordinary one inside.

    Sort pooling belongs to the affine form; with `sort`, the others have it instead of ReLU.
    Kernels of the affine form may be `telescoped`, as in the paper.

    Examples
    --------
    >>> blocks_for("norm-equiv").activation()
    SortPool(group=2)
    """
    match variant:
        case "ordinary" | "norm-equiv-wrapped":
            return PlainBlocks(bias=True, sort=sort)
        case "scale-equiv":
            return PlainBlocks(bias=False, sort=sort)
        case "norm-equiv":
            return AffineBlocks(telescoped)
        case "norm-equiv-residual":
            return DifferenceBlocks(sort)
    raise UsageError(f"variant {variant!r} is unknown: use one of {', '.join(VARIANTS)}.")


def conv_stack(
    build: BuildingBlocks, channels: int, width: int, depth: int, maps: int, parts: int
) -> nn.Sequential:
    """Chain `depth` 3x3 convolutions with nonlinearities between them."""
    layers = [build.first_conv(channels, width, maps, parts), build.activation()]
    for _ in range(depth - 2):
        layers += [build.conv(width, width), build.activation()]
    return nn.Sequential(*layers, build.last_conv(width, channels))


class ResidualBlock(nn.Module):
    """Convolution, nonlinearity, convolution, joined with the input."""

    def __init__(self, build: BuildingBlocks, width: int, gains: tuple[float, float]) -> None:
        super().__init__()
        first, second = (build.conv(width, width, gain=gain) for gain in gains)
        self.branch = nn.Sequential(first, build.activation(), second)
        self.residual = build.residual()

    def forward(self, x: Tensor) -> Tensor:
        """Join the input with its branch."""
        out: Tensor = self.residual(x, self.branch(x))
        return out

    @torch.no_grad()
    def start_as_identity(self) -> None:
        """Make the block return its input until it is trained."""
        if isinstance(self.residual, AffineResidual):
            self.residual.t.zero_()  # kernels that sum to one cannot be zero
            return
        for parameter in self.branch[-1].parameters():
            parameter.zero_()


def fold_image(x: Tensor, channels: int, factor: int) -> Tensor:
    """Unshuffle the pixels of the image; noise maps behind it are averaged over each block."""
    image, maps = x[:, :channels], x[:, channels:]
    folded = F.pixel_unshuffle(image, factor)
    return torch.cat((folded, F.avg_pool2d(maps, factor)), 1) if maps.shape[1] else folded


@torch.no_grad()
def _he_init(
    layer: nn.Conv2d | nn.ConvTranspose2d | nn.Linear, fan_in: int, gain: float
) -> nn.Module:
    """Draw weights of variance ``2·gain²/n``: with gain 1, ReLU keeps the spread."""
    if not layer.weight.is_meta:
        layer.weight.normal_(0.0, gain * math.sqrt(2 / fan_in))
    if layer.bias is not None:
        layer.bias.zero_()
    return layer
