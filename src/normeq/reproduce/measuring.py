"""PSNR of the networks of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from normeq.evaluation import ImageDenoiser, evaluate
from normeq.images.folder import Folder
from normeq.models import Network, Wrapped
from normeq.nn import fold
from normeq.reproduce.trainable import Trainable
from normeq.reproduce.workspace import Workspace

Floats = NDArray[np.float64]


def psnr_by_sigma(
    network: Trainable,
    workspace: Workspace,
    images: Folder,
    sigmas: Sequence[float],
    kind: str = "gaussian",
) -> dict[float, float]:
    """Return the mean PSNR over images at each noise level, in dB.

    Parameters
    ----------
    network
        Trained first if it has to be.
    workspace
        Where it is kept.
    images
        Clean ones.
    sigmas, kind
        Of the noise; see `normeq.evaluation.evaluate`.
    """
    net = network.network(workspace)
    denoise = image_function(net)
    told = getattr(net, "takes_sigma", "never") != "never"

    def denoiser(noisy: NDArray[Any], sigma: float) -> NDArray[Any]:
        return denoise(noisy[0], sigma if told else None)[None]

    return mean_psnr(denoiser, images, sigmas, kind)


def noisy_psnr(
    images: Folder, sigmas: Sequence[float], kind: str = "gaussian"
) -> dict[float, float]:
    """Return the mean PSNR of the noisy images themselves."""
    return mean_psnr(lambda noisy, sigma: noisy, images, sigmas, kind)


def mean_psnr(
    denoiser: ImageDenoiser, images: Folder, sigmas: Sequence[float], kind: str
) -> dict[float, float]:
    """Return the mean PSNR over images at each noise level."""
    scores = list(evaluate(denoiser, images, sigmas, kind=kind))
    return {
        sigma: fmean(score.psnr for score in scores if score.sigma == sigma) for sigma in sigmas
    }


def image_function(net: Network | Wrapped) -> Callable[[Floats, float | None], Floats]:
    """Return a network as a function of a gray image, as it was trained: white at 1, no more."""
    folded = fold(net)

    def denoise(image: Floats, sigma: float | None = None) -> Floats:
        with torch.inference_mode():
            given = torch.from_numpy(np.asarray(image, np.float32))[None, None]
            output = folded(given) if sigma is None else folded(given, sigma)
        result: Floats = output[0, 0].double().numpy()
        return result

    return denoise
