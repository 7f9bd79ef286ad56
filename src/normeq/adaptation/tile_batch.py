"""Tiles on their way through a network: the image, and what the network is told of its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from normeq.adaptation.noisy_planes import NoisyTile
from normeq.denoising.ensemble import Symmetry

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TileBatch:
    """Tiles of one shape.

    Attributes
    ----------
    inputs
        Shape ``(N, 1, H, W)``.
    sigma
        Levels of the noise, of the same shape; zero for a tile of which the network is told none.
    correlation
        ``sigma · (1 + length)`` along rows and columns, ``(N, 2, H, W)``.
    """

    inputs: Tensor
    sigma: Tensor
    correlation: Tensor

    @classmethod
    def of(
        cls,
        tiles: Sequence[NoisyTile],
        inputs: Sequence[Floats],
        factors: Sequence[float] | None = None,
        symmetries: Sequence[Symmetry] | None = None,
    ) -> Self:
        """Put tiles together.

        Parameters
        ----------
        tiles
            What is known of their noise.
        inputs
            What the network sees of each, ``(1, H, W)``.
        factors
            By how much the noise of each input is stronger than that of its tile.
        symmetries
            Applied to each.
        """
        factors = [1.0] * len(tiles) if factors is None else factors
        symmetries = [Symmetry()] * len(tiles) if symmetries is None else symmetries
        sigma, correlation = [], []
        for tile, factor, symmetry in zip(tiles, factors, symmetries, strict=True):
            levels = symmetry(tile.sigma) * (factor if tile.told else 0.0)
            lengths = symmetry.of_axes(np.array(tile.lengths)).reshape(2, 1, 1)
            sigma.append(levels)
            correlation.append(levels * (1 + lengths))
        turned = [symmetry(each) for symmetry, each in zip(symmetries, inputs, strict=True)]
        return cls(stacked(turned), stacked(sigma), stacked(correlation))


def stacked(arrays: Sequence[Floats]) -> Tensor:
    """Return arrays of one shape as one tensor of single precision."""
    return torch.from_numpy(np.stack(arrays).astype(np.float32))


def output_of(net: nn.Module, batch: TileBatch) -> Tensor:
    """Run a denoising network on tiles, told what it takes.

    Parameters
    ----------
    net
        A `normeq.models.DenoisingNetwork` or its fused twin.
    batch
        The tiles.
    """
    parameter = next(net.parameters())
    inputs, sigma, correlation = (
        each.to(parameter.device, parameter.dtype)
        for each in (batch.inputs, batch.sigma, batch.correlation)
    )
    output: Tensor
    if net.takes_sigma == "never":
        output = net(inputs)
    elif net.takes_correlation:
        output = net(inputs, sigma, correlation)
    else:
        output = net(inputs, sigma)
    return output
