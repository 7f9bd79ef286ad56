"""Photographs made to look as if a microscope had taken them."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from normeq.training.draws import log_uniform
from normeq.training.samples import Floats

# Exponents of the tone curve, which darkens all but the brightest parts; widths in pixels of the
# blur; contrasts, as shares of the range from black to white: much of an image is empty ground.
_EXPONENTS = (0.7, 4.0)
_BLUR = (0.5, 3.0)
_CONTRAST = (0.03, 1.0)


def seen_by_microscope(clean: Floats, rng: np.random.Generator) -> Floats:
    """Return bright structures on a dark ground, blurred and with less contrast.

    Microscopes show nothing finer than their resolution, which is mostly wider than a pixel, and
    fluorescent structures are sparse. Photographs are sharp and full of detail.

    Parameters
    ----------
    clean
        A patch ``(C, H, W)``, with white at 1.
    rng
        Source of randomness.
    """
    low, high = float(clean.min()), float(clean.max())
    if low == high:
        return clean
    relative = (clean - low) / (high - low)
    if rng.integers(2):
        relative = 1 - relative
    exponent, width, contrast = (
        log_uniform(limits, rng) for limits in (_EXPONENTS, _BLUR, _CONTRAST)
    )
    blurred = ndimage.gaussian_filter(relative**exponent, (0, width, width), truncate=3)
    ground = rng.uniform(0, 1 - contrast)
    seen: Floats = (ground + contrast * blurred).astype(np.float32)
    return seen
