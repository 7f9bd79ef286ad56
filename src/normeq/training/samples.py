"""What a network is trained on: noisy patches, what it is told of their noise, and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from normeq.training.recipe import NetworkSettings

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Sample:
    """One patch, with white at 1.

    Attributes
    ----------
    noisy, target
        What the network gets and what it should return, of shape ``(C, H, W)``.
        If `overstated`, the target is noisy, and the network should return what it makes of that.
    sigma
        The noise level that it is told, ``(C, H, W)``; zero everywhere if it is not told.
    correlation
        ``sigma · (1 + correlation length)`` for the axes Y and X, ``(2, H, W)``.
    level
        The true noise level, its root mean square over the patch.
    overstated
        Whether the level that it is told is too high on purpose. The target has as much noise.
    """

    noisy: Floats
    target: Floats
    sigma: Floats
    correlation: Floats
    level: float
    overstated: bool = False


@dataclass(frozen=True)
class SampleBatch:
    """Samples as tensors with a leading axis."""

    noisy: Tensor
    target: Tensor
    sigma: Tensor
    correlation: Tensor
    level: Tensor
    overstated: Tensor

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> SampleBatch:
        """Stack samples."""
        # In numpy: an addition by torch on the preparing thread starts a second pool of OpenMP
        # threads, which wait by spinning and take a third of the network's speed.
        columns = zip(*(_values(sample) for sample in samples), strict=True)
        return cls(*(torch.from_numpy(np.stack(column).astype(np.float32)) for column in columns))

    def to(self, device: torch.device, dtype: torch.dtype) -> SampleBatch:
        """Move the batch to a device and a floating point type."""
        return SampleBatch(*(tensor.to(device, dtype) for tensor in _values(self)))

    def rows(self, which: Tensor) -> SampleBatch:
        """Return some of the samples."""
        return SampleBatch(*(tensor[which] for tensor in _values(self)))

    def arguments(self, network: NetworkSettings) -> tuple[Tensor, ...]:
        """Return what a network is called with: the images, and the maps that it takes."""
        if network.takes_sigma == "never":
            return (self.noisy,)
        sigma = self.sigma
        if not network.separate_channels:  # one level for all of them
            sigma = sigma.square().mean(1, keepdim=True).sqrt()
        return (self.noisy, sigma, self.correlation)[: 3 if network.takes_correlation else 2]


def _values(record: Any) -> list[Any]:
    """Return the fields of a dataclass in their order, without copying them."""
    return [getattr(record, field.name) for field in fields(record)]
