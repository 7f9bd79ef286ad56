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
from normeq.training.samples import Sample, SampleBatch

# First word of the seeds, so that training and validation never draw the same noise.
_STREAM = 1
# Crops of which one is chosen by its detail.
_CANDIDATES = 4


class Patches:
    """The endless sequence of training samples, by index."""

    def __init__(self, images: list[NDArray[Any]], recipe: Data, seed: int) -> None:
        self._images = images
        self._recipe = recipe
        self._seed = seed

    def sample(self, index: int) -> Sample:
        """Return one sample."""
        rng = np.random.default_rng((_STREAM, self._seed, index))
        patch = self._crop(rng) if self._recipe.crops == "uniform" else self._detailed_crop(rng)
        patch = np.rot90(patch, int(rng.integers(4)), axes=(1, 2))
        if rng.integers(2):
            patch = patch[:, :, ::-1]
        level = rng.uniform(*self._recipe.sigma_range) / 255
        clean = to_unit(patch)
        if rng.random() < self._recipe.microscope:
            clean = seen_by_microscope(clean, rng)
        if self._recipe.man_made and rng.random() < self._recipe.man_made:
            clean = man_made(clean, rng)
        return noisy_sample(clean, level, self._recipe.noise, self._recipe.mixture, rng)

    def batch(self, first: int, count: int) -> SampleBatch:
        """Return `count` consecutive samples as tensors."""
        return SampleBatch.of([self.sample(first + offset) for offset in range(count)])

    def _crop(self, rng: np.random.Generator) -> NDArray[Any]:
        """Draw an image, and a place in it, uniformly."""
        image = self._images[rng.integers(len(self._images))]
        side = self._recipe.patch
        top, left = (int(rng.integers(extent - side + 1)) for extent in image.shape[1:])
        return image[:, top : top + side, left : left + side]

    def _detailed_crop(self, rng: np.random.Generator) -> NDArray[Any]:
        """Draw a few crops, and one of them with a probability proportional to its detail."""
        crops = [self._crop(rng) for _ in range(_CANDIDATES)]
        detail = np.array([_detail(crop) for crop in crops])
        chances = detail / detail.sum() if detail.any() else None
        return crops[rng.choice(_CANDIDATES, p=chances)]


def _detail(patch: NDArray[Any]) -> float:
    """Return the mean difference between diagonal neighbours, on every other row and column."""
    values = patch.astype(np.float32)
    return float(np.abs(values[:, 1::2, 1::2] - values[:, :-1:2, :-1:2]).mean())


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
