"""The blocks of an image that can tell something about its noise, and what is measured in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from normeq.noise import spectra
from normeq.noise.defects import constant, cut_off

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A block is used if at most this share of its pixels is missing or cut off, or is constant.
_MOST_MISSING = 0.05
_MOST_CONSTANT = 0.5
# Sides of the grid of areas that are left out one by one to measure uncertainty.
_AREAS = 4


@dataclass(frozen=True)
class Blocks:
    """Level and spectra of each block, its area of the image, and the share that is cut off."""

    levels: Floats
    cosine: Floats
    fourier: Floats
    groups: NDArray[np.intp]
    cut_off: Floats

    def __len__(self) -> int:
        return len(self.levels)

    def only(self, chosen: Mask) -> Blocks:
        """Return some of the blocks."""
        return Blocks(*(getattr(self, field.name)[chosen] for field in fields(self)))


def blocks_of(planes: list[Floats], values: Floats) -> Blocks:
    """Cut regions into blocks, and measure those that can be used.

    Parameters
    ----------
    planes
        Regions of an image, NaN where a pixel has no value.
    values
        Their pixels that have one.
    """
    ends = cut_off(values)
    blocks = _join(_of_plane(plane, number, ends) for number, plane in enumerate(planes))
    whole = blocks.cut_off <= _MOST_MISSING
    # Where most of the image is cut off, as where most pixels caught no photon, the rest does
    # not stand for it.
    return blocks.only(whole) if 2 * whole.sum() > len(blocks) else blocks


def _of_plane(plane: Floats, number: int, ends: tuple[float, float]) -> Blocks | None:
    """Cut a region into blocks, and measure those that can be used."""
    if min(plane.shape) < spectra.BLOCK:
        return None
    missing = np.isnan(plane)
    share_missing = spectra.cut(missing).mean((2, 3))
    share_constant = spectra.cut(constant(plane)).mean((2, 3))
    used = (share_missing <= _MOST_MISSING) & (share_constant <= _MOST_CONSTANT)
    if not used.any():
        return None
    share_cut_off = spectra.cut((plane <= ends[0]) | (plane >= ends[1])).mean((2, 3))
    blocks = np.array(spectra.cut(plane)[used])
    present = np.ones(len(blocks))
    if missing.any():
        holes = np.isnan(blocks)
        present = 1.0 - holes.mean((1, 2))
        means = np.nanmean(blocks, axis=(1, 2))
        blocks = np.where(holes, means[:, None, None], blocks)
    down, across = np.nonzero(used)
    area = (_AREAS * down // used.shape[0]) * _AREAS + _AREAS * across // used.shape[1]
    return Blocks(
        spectra.window_mean(blocks),
        spectra.cosine_power(blocks) / present[:, None],
        spectra.fourier_power(blocks) / present[:, None, None],
        number * _AREAS**2 + area,
        share_cut_off[used],
    )


def _join(parts: Iterable[Blocks | None]) -> Blocks:
    found = [part for part in parts if part is not None]
    if not found:
        none = np.empty(0)
        return Blocks(none, none, none, none.astype(np.intp), none)
    return Blocks(
        *(np.concatenate([getattr(part, f.name) for part in found]) for f in fields(Blocks))
    )
