"""Crops with more detail in a pixel: photographs reduced and sharpened.

Large photographs are smooth at the scale of a pixel. A network that learns on them alone is not at
its best on small, sharp images.
"""

from __future__ import annotations

import numpy as np
from PIL import Image
from scipy import ndimage

from normeq.training.draws import log_uniform
from normeq.training.samples import Floats

# Factors by which crops are reduced, and kernels that do it without aliasing.
_REDUCTIONS = (0.35, 0.9)
_KERNELS = (Image.Resampling.BICUBIC, Image.Resampling.LANCZOS)
# Widths in pixels of the detail that is amplified, and the most that is added of it.
_WIDTHS = (0.6, 1.2)
_MOST_ADDED = 1.5


def side_before_reduction(side: int, largest: int, rng: np.random.Generator) -> int:
    """Draw the side of a square that is reduced to one of `side` pixels, `largest` at most."""
    return min(round(side / log_uniform(_REDUCTIONS, rng)), largest)


def reduced(square: Floats, side: int, rng: np.random.Generator) -> Floats:
    """Return a square ``(C, S, S)``, with white at 1, at a smaller size ``(C, side, side)``."""
    kernel = _KERNELS[rng.integers(len(_KERNELS))]
    planes = [Image.fromarray(plane).resize((side, side), kernel) for plane in square]
    small: Floats = np.clip(np.stack([np.asarray(plane) for plane in planes]), 0, 1)
    return small


def sharpened(clean: Floats, rng: np.random.Generator) -> Floats:
    """Return a patch ``(C, H, W)``, with white at 1, whose finest detail is amplified."""
    width = rng.uniform(*_WIDTHS)
    detail = clean - ndimage.gaussian_filter(clean, (0, width, width))
    sharp: Floats = np.clip(clean + np.float32(rng.uniform(0, _MOST_ADDED)) * detail, 0, 1)
    return sharp
