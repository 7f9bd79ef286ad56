"""The interface of everything that denoises, and functions behind it.

Denoisers with a finite receptive field run tile by tile; every other one sees whole planes.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from normeq.classical.by_name import Method
from normeq.denoising.introspection import Law, takes_sigma
from normeq.errors import UsageError
from normeq.models.noise_maps import TakesSigma

Floats = NDArray[np.float64]


class Denoiser(ABC):
    """What every denoiser offers.

    Attributes
    ----------
    name
        What messages call it.
    takes_sigma
        Whether it is told the noise level.
    takes_maps
        Whether it can be told a noise level for each pixel.
    takes_correlation
        Whether it is told how far the noise is correlated.
    channels
        How many channels of an image it sees at once: 1, or 3 for colour.
    halo
        Its receptive field to each side; None if it must see whole planes.
    stride
        Tiles start on multiples of it.
    law
        How it follows a change of units.
    offset_per_channel
        Whether that law holds for an offset of each channel, not only for one that all share.
    can_be_stabilised
        Whether it may see the image after a transform that makes the noise uniform.
    keeps_constants
        Whether a constant plane comes back as it is, whatever is inside.
    """

    name: str
    takes_sigma: TakesSigma
    takes_maps: bool = False
    takes_correlation: bool = False
    channels: int = 1
    halo: int | None = None
    stride: int = 1
    law: Law
    offset_per_channel: bool = False
    can_be_stabilised: bool = False
    keeps_constants: bool = False

    @property
    def identity(self) -> str:
        """A digest of the denoiser: equal for equal results."""
        return hashlib.sha256(f"{self.name} {self.law}".encode()).hexdigest()

    def pixels_at_once(self) -> int | None:
        """Return how many pixels fit into the memory for one call; None if that is open."""
        return None

    def remove_unit_noise(self, images: torch.Tensor) -> torch.Tensor:
        """Denoise ``(N, 1, H, W)`` whose noise has standard deviation 1, with gradients."""
        raise UsageError(f"{self.name} has no gradients: noise='learned' needs a network.")

    @abstractmethod
    def run(
        self,
        tiles: Floats,
        sigma: Floats | None = None,
        lengths: Floats | None = None,
    ) -> NDArray[Any]:
        """Denoise tiles of one shape, in the denoiser's own units.

        Parameters
        ----------
        tiles
            Of shape ``(N, C, H, W)``.
        sigma
            Noise levels ``(N,)`` or, of each channel, ``(N, C)``, or maps of them
            ``(N, 1, H, W)``, cut from those of the whole image.
        lengths
            How far the noise of each tile is correlated along rows and columns, ``(N, 2)``.
        """


class FunctionDenoiser(Denoiser):
    """A function of one plane and, if it takes one, the noise level; it sees whole planes."""

    law = "own"

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self.takes_sigma = takes_sigma(function)
        # A function of the user may count on its own units; ours do not.
        self.can_be_stabilised = isinstance(function, Method)
        self._function = function

    def run(
        self,
        tiles: Floats,
        sigma: Floats | None = None,
        lengths: Floats | None = None,
    ) -> NDArray[Any]:
        levels = [()] * len(tiles) if sigma is None else [(float(level),) for level in sigma]
        planes = zip(tiles[:, 0], levels, strict=True)
        return np.stack([np.asarray(self._function(plane, *level)) for plane, level in planes])[
            :, None
        ]
