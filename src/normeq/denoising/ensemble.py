"""The mean of a denoiser's results over symmetries of the square: flips and transpositions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from normeq.denoising.denoiser import Denoiser, Floats
from normeq.errors import UsageError
from normeq.nn import pad_to_multiple

#: How many symmetries a result is the mean over.
EnsembleSize = Literal[1, 2, 8]
_SIZES: tuple[EnsembleSize, ...] = get_args(EnsembleSize)


@dataclass(frozen=True)
class Symmetry:
    """A symmetry of the square: perhaps a transposition, then perhaps flips of rows, of columns.

    Examples
    --------
    >>> turn = Symmetry(transposed=True, flips=(False, True))
    >>> turn(np.array([[1, 2], [3, 4]]))
    array([[3, 1],
           [4, 2]])
    >>> turn.undone(turn(np.array([[1, 2], [3, 4]])))
    array([[1, 2],
           [3, 4]])
    """

    transposed: bool = False
    flips: tuple[bool, bool] = (False, False)

    def __call__(self, image: NDArray[Any]) -> NDArray[Any]:
        """Apply it to the last two axes."""
        return self._flipped(np.swapaxes(image, -2, -1) if self.transposed else image)

    def undone(self, image: NDArray[Any]) -> NDArray[Any]:
        """Apply its inverse."""
        flipped = self._flipped(image)
        return np.swapaxes(flipped, -2, -1) if self.transposed else flipped

    def of_axes(self, pairs: NDArray[Any]) -> NDArray[Any]:
        """Apply it to numbers that belong to rows and columns, on the last axis."""
        return pairs[..., ::-1] if self.transposed else pairs

    def _flipped(self, image: NDArray[Any]) -> NDArray[Any]:
        axes = tuple(axis for axis, flip in zip((-2, -1), self.flips, strict=True) if flip)
        return np.flip(image, axes)


#: All eight.
EVERY_SYMMETRY = [
    Symmetry(transposed, (down, across))
    for transposed in (False, True)
    for down in (False, True)
    for across in (False, True)
]
_SYMMETRIES = {
    1: [Symmetry()],
    2: [Symmetry(), Symmetry(transposed=True, flips=(True, True))],
    8: EVERY_SYMMETRY,
}


class EnsembleDenoiser(Denoiser):
    """The mean of ``g⁻¹(f(g(y)))`` over symmetries ``g``: equivariant to units as ``f`` is.

    It takes as many times as long as there are symmetries. With all eight, it commutes with every
    flip and transposition of an image whose sides are multiples of the stride.

    Parameters
    ----------
    inner
        The denoiser.
    size
        2 for the image and its mirror image at the second diagonal, or 8 for all symmetries.
    """

    def __init__(self, inner: Denoiser, size: EnsembleSize) -> None:
        if size not in _SIZES:
            raise UsageError(f"ensemble is {size}: use {', '.join(map(str, _SIZES))}.")
        self.name = f"{inner.name}, mean over {size} symmetries"
        self.takes_sigma = inner.takes_sigma
        self.takes_maps = inner.takes_maps
        self.takes_correlation = inner.takes_correlation
        self.channels = inner.channels
        self.halo = inner.halo
        self.stride = inner.stride
        self.law = inner.law
        self.offset_per_channel = inner.offset_per_channel
        self.can_be_stabilised = inner.can_be_stabilised
        self.keeps_constants = inner.keeps_constants
        self._inner = inner
        self._symmetries = _SYMMETRIES[size]

    @property
    def identity(self) -> str:
        return hashlib.sha256(f"{self.name} {self._inner.identity}".encode()).hexdigest()

    def pixels_at_once(self) -> int | None:
        return self._inner.pixels_at_once()

    def remove_unit_noise(self, images: torch.Tensor) -> torch.Tensor:
        return self._inner.remove_unit_noise(images)

    def run(
        self,
        tiles: Floats,
        sigma: Floats | None = None,
        lengths: Floats | None = None,
    ) -> NDArray[Any]:
        height, width = tiles.shape[-2:]
        # Up to the stride, at the ends where the denoiser itself would do it: a mirrored tile then
        # lies on the grid of the mirrored image.
        padded = self._padded(tiles)
        levels = self._padded(sigma) if sigma is not None and sigma.ndim > 2 else sigma
        total: Floats = np.zeros_like(padded)
        for symmetry in self._symmetries:
            output = self._inner.run(
                np.ascontiguousarray(symmetry(padded)),
                levels
                if levels is None or levels.ndim <= 2
                else np.ascontiguousarray(symmetry(levels)),
                None if lengths is None else np.ascontiguousarray(symmetry.of_axes(lengths)),
            )
            total += symmetry.undone(output)
        return total[..., :height, :width] / len(self._symmetries)

    def _padded(self, tiles: Floats) -> Floats:
        padded: Floats = pad_to_multiple(torch.from_numpy(tiles), self.stride).numpy()
        return padded
