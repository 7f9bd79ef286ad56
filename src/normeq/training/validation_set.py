"""The fixed noisy set on which a run is validated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq import noise
from normeq.images.folder import to_unit
from normeq.training.noise_colors import colored_noise
from normeq.training.noise_mixture import NoisyPatch
from normeq.training.recipe import Recipe, Validation
from normeq.training.samples import Floats, Sample, SampleBatch

# First word of the seeds, so that validation and training never draw the same noise.
_STREAM = 2
# Width of the Gaussian kernel, in pixels, that colours correlated noise.
_WIDTH = 1.0


@dataclass(frozen=True)
class Condition:
    """One column of a validation: the noise, and whether the network is told about it."""

    sigma: float
    told: bool = True
    correlated: bool = False

    @property
    def name(self) -> str:
        """A short name for tables."""
        return f"{self.sigma:g}{'_correlated' * self.correlated}{'_not_told' * (not self.told)}"


def conditions(recipe: Recipe) -> list[Condition]:
    """List the conditions of a recipe's validation.

    A network that never takes sigma is never told, and its columns do not say so.
    """
    levels, takes_sigma = recipe.validation, recipe.network.takes_sigma
    listed = [Condition(sigma) for sigma in levels.sigma]
    if takes_sigma == "optional":
        listed += [Condition(sigma, told=False) for sigma in levels.sigma]
    return listed + [Condition(sigma, correlated=True) for sigma in levels.correlated]


def noisy_images(
    images: list[NDArray[Any]], condition: Condition, recipe: Validation, kind: str, seed: int
) -> Iterator[SampleBatch]:
    """Yield the images of a validation under one condition, one by one."""
    for index, image in enumerate(images):
        clean = to_unit(centre(image, recipe.crop))
        # The same pattern under every condition: levels then differ by their strength alone.
        rng = np.random.default_rng((_STREAM, seed, index))
        yield SampleBatch.of([_sample(clean, condition, kind, rng)])


def _sample(clean: Floats, condition: Condition, kind: str, rng: np.random.Generator) -> Sample:
    level = condition.sigma / 255
    lengths = (0.0, 0.0)
    if condition.correlated:
        unit, lengths = colored_noise(clean.shape, (_WIDTH, _WIDTH), rng)
    else:
        unit = noise.draw(kind, clean.shape, 1.0, rng)
    sigma: Floats = np.full(clean.shape, level, np.float32)
    noisy: Floats = clean + sigma * unit
    return NoisyPatch(clean, noisy, sigma, lengths, level).told(float(condition.told))


def centre(image: NDArray[Any], side: int | None) -> NDArray[Any]:
    """Return the central square of an image ``(C, H, W)``, or all of it without a side."""
    if side is None:
        return image
    top, left = (max(extent - side, 0) // 2 for extent in image.shape[1:])
    return image[:, top : top + side, left : left + side]
