"""The words networks are written in: one vocabulary for each variant, one network for all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal, get_args

import torch
from torch import Tensor, nn

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

Variant = Literal[
    "ordinary", "scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"
]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


class Vocabulary(ABC):
    """What a network is built from, in one variant.

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
    def first_conv(self, inputs: int, outputs: int, kernel: int = 3, maps: int = 0) -> nn.Module:
        """Return the convolution that sees the image and, as trailing channels, noise maps."""

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
        """Return the gains of the two convolutions in each of so many residual branches.

        They keep the spread of features the same through all of them.
        """


class Add(nn.Module):
    """The ordinary residual connection."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Return ``a + b``."""
        return a + b


class PlainVocabulary(Vocabulary):
    """Zero-padded convolutions and ReLU, with biases (ordinary) or without (scale-equivariant).

    With `sort`, sort pooling takes the place of ReLU: it scales as well, and never falls silent.
    """

    def __init__(self, bias: bool, sort: bool = False) -> None:
        self.bias = bias
        self.batch_norm = bias
        self.sort = sort

    def conv(self, inputs: int, outputs: int, kernel: int = 3, gain: float = 1.0) -> nn.Module:
        conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=self.bias)
        return _he_init(conv, inputs * kernel**2, gain)

    def first_conv(self, inputs: int, outputs: int, kernel: int = 3, maps: int = 0) -> nn.Module:
        return self.conv(inputs + maps, outputs, kernel)

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


class DifferenceVocabulary(PlainVocabulary):
    """The residual form ``y + g(Dy)``: first kernels sum to zero, then bias-free ReLU layers."""

    adds_input = True

    def __init__(self, sort: bool = False) -> None:
        super().__init__(bias=False, sort=sort)

    def first_conv(self, inputs: int, outputs: int, kernel: int = 3, maps: int = 0) -> nn.Module:
        return ZeroSumConv2d(
            inputs + maps, outputs, kernel, padding=kernel // 2, free_channels=maps
        )

    def last_conv(self, inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
        # The output is a correction of the image, small beside it.
        return self.conv(inputs, outputs, kernel, gain=0.1)


class AffineVocabulary(Vocabulary):
    """The affine form: kernels that sum to one, sort pooling, affine residuals, copy padding."""

    def conv(self, inputs: int, outputs: int, kernel: int = 3, gain: float = 1.0) -> nn.Module:
        conv = AffineConv2d(inputs, outputs, kernel, padding=kernel // 2)
        init_spread_(conv, gain)
        return conv

    def first_conv(self, inputs: int, outputs: int, kernel: int = 3, maps: int = 0) -> nn.Module:
        return AffineConv2d(inputs + maps, outputs, kernel, padding=kernel // 2, free_channels=maps)

    def last_conv(self, inputs: int, outputs: int, kernel: int = 3) -> nn.Module:
        return self.conv(inputs, outputs, kernel)

    def downsample(self, inputs: int, outputs: int) -> nn.Module:
        return AffineConv2d(inputs, outputs, 2, stride=2)

    def upsample(self, inputs: int, outputs: int) -> nn.Module:
        return AffineConvTranspose2d(inputs, outputs, 2)

    def linear(self, inputs: int, outputs: int) -> nn.Module:
        return AffineLinear(inputs, outputs)

    def activation(self) -> nn.Module:
        return SortPool()

    def residual(self) -> nn.Module:
        return AffineResidual()

    def branch_gains(self, branches: int) -> tuple[float, float]:
        # (x + branch)/2 keeps the variance of x if that of the branch is three times as large.
        return 1.0, math.sqrt(3)


def vocabulary(variant: Variant, sort: bool = False) -> Vocabulary:
    """Return the vocabulary of a variant; a wrapped network is an ordinary one inside.

    Sort pooling belongs to the affine form; with `sort`, the others have it instead of ReLU.

    Examples
    --------
    >>> vocabulary("norm-equiv").activation()
    SortPool(group=2)
    """
    match variant:
        case "ordinary" | "norm-equiv-wrapped":
            return PlainVocabulary(bias=True, sort=sort)
        case "scale-equiv":
            return PlainVocabulary(bias=False, sort=sort)
        case "norm-equiv":
            return AffineVocabulary()
        case "norm-equiv-residual":
            return DifferenceVocabulary(sort)
    raise UsageError(f"variant {variant!r} is unknown: use one of {', '.join(VARIANTS)}.")


@torch.no_grad()
def _he_init(
    layer: nn.Conv2d | nn.ConvTranspose2d | nn.Linear, fan_in: int, gain: float
) -> nn.Module:
    """Draw weights of variance ``2·gain²/n``: with gain 1, ReLU keeps the spread."""
    layer.weight.normal_(0.0, gain * math.sqrt(2 / fan_in))
    if layer.bias is not None:
        layer.bias.zero_()
    return layer
