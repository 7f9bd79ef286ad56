"""Training data: noisy patches of clean images, made on the fly.

Sample i (image, crop, flip, rotation, noise level, noise) is a pure function of (seed, i): the
number of threads, processes and interruptions does not matter.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from normeq import noise
from normeq.images.folder import to_unit
from normeq.training.recipe import Data, Validation

# First words of the seeds of the two streams of randomness, so that they never meet.
_TRAINING, _VALIDATION = 1, 2


@dataclass(frozen=True)
class Batch:
    """Noisy patches, the truth, and the noise level of each, with white at 1."""

    noisy: Tensor
    clean: Tensor
    sigma: Tensor

    def to(self, device: torch.device, dtype: torch.dtype) -> Batch:
        """Move the batch to a device and a floating point type."""
        return Batch(*(t.to(device, dtype) for t in (self.noisy, self.clean, self.sigma)))


class Patches:
    """The endless sequence of training samples, by index."""

    def __init__(self, images: list[NDArray[Any]], recipe: Data, seed: int) -> None:
        self._images = images
        self._recipe = recipe
        self._seed = seed

    def sample(self, index: int) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
        """Return the clean patch, the noise to add to it, and its level, with white at 1."""
        rng = np.random.default_rng((_TRAINING, self._seed, index))
        image = self._images[rng.integers(len(self._images))]
        side = self._recipe.patch
        top, left = (int(rng.integers(extent - side + 1)) for extent in image.shape[1:])
        patch = image[:, top : top + side, left : left + side]
        patch = np.rot90(patch, int(rng.integers(4)), axes=(1, 2))
        if rng.integers(2):
            patch = patch[:, :, ::-1]
        sigma = rng.uniform(*self._recipe.sigma_range) / 255
        return to_unit(patch), noise.draw(self._recipe.noise, patch.shape, sigma, rng), sigma

    def batch(self, first: int, count: int) -> Batch:
        """Return `count` consecutive samples as tensors."""
        samples = [self.sample(first + offset) for offset in range(count)]
        clean = np.stack([clean for clean, _, _ in samples])
        # In numpy: an addition by torch on the preparing thread starts a second pool of OpenMP
        # threads, which wait by spinning and take a third of the network's speed.
        noisy = clean + np.stack([added for _, added, _ in samples])
        sigma = torch.tensor([sigma for _, _, sigma in samples], dtype=torch.float32)
        return Batch(torch.from_numpy(noisy), torch.from_numpy(clean), sigma)


def noisy_images(
    images: list[NDArray[Any]], recipe: Validation, kind: str, seed: int
) -> Iterator[Batch]:
    """Yield the fixed noisy set of a validation, image by image, level after level."""
    for sigma in recipe.sigma:
        for index, image in enumerate(images):
            clean = to_unit(_centre(image, recipe.crop))
            # The same pattern at every level: levels then differ by nothing but their strength.
            rng = np.random.default_rng((_VALIDATION, seed, index))
            noisy = clean + noise.draw(kind, clean.shape, sigma / 255, rng)
            yield Batch(
                torch.from_numpy(noisy)[None],
                torch.from_numpy(clean)[None],
                torch.tensor([sigma / 255]),
            )


def _centre(image: NDArray[Any], side: int | None) -> NDArray[Any]:
    if side is None:
        return image
    top, left = (max(extent - side, 0) // 2 for extent in image.shape[1:])
    return image[:, top : top + side, left : left + side]


def prefetch(make: Callable[[int], Batch], indices: range, ahead: int = 4) -> Generator[Batch]:
    """Yield ``make(i)`` for each index, prepared by a background thread up to `ahead` early."""
    ready: queue.Queue[Batch | BaseException] = queue.Queue(ahead)
    stop = threading.Event()

    def put(item: Batch | BaseException) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for index in indices:
                if stop.is_set():
                    return
                put(make(index))
        except BaseException as error:  # handed over, and raised where the batches are used
            put(error)

    thread = threading.Thread(target=work, name="normeq-prefetch", daemon=True)
    thread.start()
    try:
        for _ in indices:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
