"""How close an image is to the truth."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["psnr", "ssim"]


def psnr(image: NDArray[np.floating], truth: NDArray[np.floating]) -> float:
    """Peak signal-to-noise ratio in dB: ``-10 · log10 mean((clip(image) - clip(truth))²)``.

    Both images are clipped to [0, 1] first, as published figures on Set12 and BSD68 are measured.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.metrics import psnr
    >>> round(psnr(np.full((8, 8), 0.6), np.full((8, 8), 0.5)), 3)
    20.0

    Parameters
    ----------
    image, truth
        Images of one shape, with 0 for black and 1 for white.
    """
    difference = np.clip(image, 0, 1).astype(np.float64) - np.clip(truth, 0, 1)
    error = float(np.mean(difference**2))
    return math.inf if error == 0 else -10 * math.log10(error)


def ssim(image: NDArray[np.floating], truth: NDArray[np.floating]) -> float:
    """Structural similarity (Wang et al., 2004: Gaussian window of 1.5) of images in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.metrics import ssim
    >>> ramp = np.linspace(0, 1, 256).reshape(16, 16)
    >>> round(ssim(ramp, ramp), 6)
    1.0

    Parameters
    ----------
    image, truth
        Images of one shape, (H, W) or (H, W, C), clipped to [0, 1] as for `psnr`.
    """
    from skimage.metrics import structural_similarity

    return float(
        structural_similarity(
            np.clip(image, 0, 1).astype(np.float64),
            np.clip(truth, 0, 1).astype(np.float64),
            data_range=1.0,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
            channel_axis=2 if truth.ndim == 3 else None,
        )
    )
