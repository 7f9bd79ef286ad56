"""Training data: noisy patches of clean images, made on the fly.

Sample i (image, crop, flip, rotation, noise) is a pure function of (seed, i): the number of
threads, processes and interruptions does not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.images.folder import to_unit
from normeq.training.man_made import man_made
from normeq.training.noise_mixture import noisy_sample
from normeq.training.optics import seen_by_microscope
from normeq.training.recipe import Data
from normeq.training.samples import Floats, Sample, SampleBatch
from normeq.training.sharpness import reduced, sharpened, side_before_reduction

# First word of the seeds, so that training and validation never draw the same noise.
_STREAM = 1
# Crops of which one is chosen by its detail.
_CANDIDATES = 6


class Patches:
    """The endless sequence of training samples, by index."""

    def __init__(self, images: list[NDArray[Any]], recipe: Data, seed: int) -> None:
        self._images = images
        self._recipe = recipe
        self._seed = seed

    def sample(self, index: int) -> Sample:
        """Return one sample."""
        rng = np.random.default_rng((_STREAM, self._seed, index))
        by_microscope = rng.random() < self._recipe.microscope
        # What photographs need to be like smaller ones would make them less like microscopy.
        share_reduced = 0.0 if by_microscope else self._recipe.reduced
        crop = self._detailed_crop if self._recipe.detail else self._crop
        patch = crop(share_reduced, rng)
        patch = np.rot90(patch, int(rng.integers(4)), axes=(1, 2))
        clean = np.ascontiguousarray(patch[:, :, ::-1] if rng.integers(2) else patch)
        level = rng.uniform(*self._recipe.sigma_range) / 255
        if by_microscope:
            clean = seen_by_microscope(clean, rng)
        elif rng.random() < self._recipe.sharpened:
            clean = sharpened(clean, rng)
        if rng.random() < self._recipe.man_made:
            clean = man_made(clean, rng)
        return noisy_sample(clean, level, self._recipe.noise, self._recipe.mixture, rng)

    def batch(self, first: int, count: int) -> SampleBatch:
        """Return `count` consecutive samples as tensors."""
        return SampleBatch.of([self.sample(first + offset) for offset in range(count)])

    def _crop(self, share_reduced: float, rng: np.random.Generator) -> Floats:
        """Draw an image, a scale and a place in it, each uniformly."""
        image = self._images[rng.integers(len(self._images))]
        wanted = side = self._recipe.patch
        if rng.random() < share_reduced:
            side = side_before_reduction(wanted, min(image.shape[1:]), rng)
        top, left = (int(rng.integers(extent - side + 1)) for extent in image.shape[1:])
        crop = to_unit(image[:, top : top + side, left : left + side])
        return crop if side == wanted else reduced(crop, wanted, rng)

    def _detailed_crop(self, share_reduced: float, rng: np.random.Generator) -> Floats:
        """Draw a few crops, and one of them with a probability that grows with its detail."""
        crops = [self._crop(share_reduced, rng) for _ in range(_CANDIDATES)]
        weights = np.array([_detail(crop) for crop in crops]) ** self._recipe.detail
        chances = weights / weights.sum() if weights.any() else None
        return crops[rng.choice(_CANDIDATES, p=chances)]


def _detail(patch: Floats) -> float:
    """Return the mean difference between diagonal neighbours, on every other row and column."""
    return float(np.abs(patch[:, 1::2, 1::2] - patch[:, :-1:2, :-1:2]).mean())


def prefetch(
    make: Callable[[int], SampleBatch], indices: range, ahead: int = 4
) -> Generator[SampleBatch]:
    """Yield ``make(i)`` for each index, prepared by a background thread up to `ahead` early."""
    todo = iter(indices)
    with ThreadPoolExecutor(1, thread_name_prefix="normeq-prefetch") as thread:
        pending = deque(thread.submit(make, index) for index in islice(todo, ahead))
        try:
            while pending:
                batch = pending.popleft().result()
                pending.extend(thread.submit(make, index) for index in islice(todo, 1))
                yield batch
        finally:
            thread.shutdown(cancel_futures=True)
