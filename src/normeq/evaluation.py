"""PSNR and SSIM of any denoiser over a folder of clean images and several noise levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq import noise
from normeq.denoising.arrays import denoise
from normeq.denoising.introspection import channels_of, takes_sigma
from normeq.denoising.names import resolve
from normeq.denoising.noise_options import NoiseName
from normeq.errors import ResultError, UsageError
from normeq.images.folder import Folder, to_unit
from normeq.metrics import psnr, ssim

#: Takes a noisy image (C, H, W) with black at 0 and white at 1, and its noise level; denoises it.
ImageDenoiser = Callable[[NDArray[np.float32], float], NDArray[Any]]

#: Side of the window in which structural similarity is measured.
SMALLEST = 11

# First word of the seeds of evaluations, so that their noise is never that of a training.
_EVALUATION = 3


@dataclass(frozen=True)
class Score:
    """How well one image was denoised; sigma on the scale where white is 255."""

    image: str
    sigma: float
    psnr: float
    ssim: float


def evaluate(
    denoiser: ImageDenoiser,
    folder: Folder,
    sigmas: Sequence[float],
    *,
    kind: str = "gaussian",
    seed: int = 0,
) -> Iterator[Score]:
    """Yield the score of every image at every noise level, level after level.

    The noise is a pure function of (seed, position of the image, sigma): the same for every
    denoiser. It is added without clipping or rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.evaluation import evaluate
    >>> from normeq.images.folder import Folder
    >>> folder = Folder([np.full((1, 64, 64), 127, np.uint8)], ["gray"])
    >>> [score] = evaluate(lambda noisy, sigma: noisy, folder, [25])
    >>> print(f"{score.psnr:.0f}")
    20

    Parameters
    ----------
    denoiser
        See `ImageDenoiser`; `image_denoiser` makes one of a name.
    folder
        Clean images, as `normeq.images.folder.read_folder` returns them.
    sigmas
        Noise levels on the scale where white is 255.
    kind
        Family of the noise, one of `normeq.noise.KINDS`.
    seed
        Another seed gives other noise.
    """
    for sigma in sigmas:
        if not 0 < sigma < float("inf"):
            raise UsageError(f"sigma is {sigma:g}; noise levels are positive numbers.")
    for sigma in sigmas:
        for index, (name, image) in enumerate(zip(folder.names, folder.images, strict=True)):
            clean = to_unit(image)
            rng = np.random.default_rng((_EVALUATION, seed, index, _bits(sigma)))
            noisy = clean + noise.draw(kind, clean.shape, sigma / 255, rng)
            yield Score(name, sigma, *_quality(denoiser, noisy, sigma / 255, clean))


def _quality(
    denoiser: ImageDenoiser, noisy: NDArray[np.float32], sigma: float, clean: NDArray[np.float32]
) -> tuple[float, float]:
    """Return PSNR and SSIM of what a denoiser makes of an image, NaN if that is not finite."""
    try:
        output = np.asarray(denoiser(noisy, sigma))
    except ResultError:
        return math.nan, math.nan
    return psnr(output, clean), ssim(_shown(output), _shown(clean))


def image_denoiser(name: str, assume: NoiseName | None = None) -> tuple[ImageDenoiser, int]:
    """Return what a name stands for (see `normeq.denoising.names.resolve`), and its channels.

    Images go the way of `normeq.denoise`, with black and white as the value range.

    Parameters
    ----------
    name
        Of the model.
    assume
        What the denoiser assumes of the noise, as in `normeq.denoise`; None: white noise, of the
        level that was added where the model is told one.
    """
    model = resolve(name)
    channels = channels_of(model)
    is_told = assume is None and takes_sigma(model) != "never"

    def denoised(noisy: NDArray[np.float32], sigma: float) -> NDArray[Any]:
        return denoise(
            noisy,
            sigma if is_told else None,
            noise=assume or "gaussian",
            model=model if assume is None else name,
            channel_axis=0 if channels > 1 else None,
            bayer="none",
            value_range=(0.0, 1.0),
        )

    return denoised, channels


def means(scores: Sequence[Score]) -> list[Score]:
    """Return one score for each noise level: the mean over images.

    Examples
    --------
    >>> from normeq.evaluation import Score, means
    >>> means([Score("a", 25, 30.0, 0.8), Score("b", 25, 32.0, 1.0)])
    [Score(image='mean', sigma=25, psnr=31.0, ssim=0.9)]
    """
    levels: dict[float, list[Score]] = {}
    for score in scores:
        levels.setdefault(score.sigma, []).append(score)
    return [
        Score("mean", sigma, fmean(s.psnr for s in group), fmean(s.ssim for s in group))
        for sigma, group in levels.items()
    ]


def _bits(value: float) -> int:
    """Return a number's binary representation, as a word of a seed."""
    return int(np.float64(value).view(np.uint64))


def _shown(image: NDArray[Any]) -> NDArray[Any]:
    """Bring (C, H, W) into the layout in which similarity is measured: (H, W) or (H, W, C)."""
    return image[0] if image.shape[0] == 1 else image.transpose(1, 2, 0)
