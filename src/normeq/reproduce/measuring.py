"""PSNR of the networks of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from normeq.evaluation import evaluate, image_denoiser
from normeq.images.folder import Folder
from normeq.reproduce.trainable import Trainable
from normeq.reproduce.workspace import Workspace


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
    network.network(workspace)
    denoiser, _ = image_denoiser(str(network.weights_file(workspace)))
    scores = list(evaluate(denoiser, images, sigmas, kind=kind))
    return {
        sigma: fmean(score.psnr for score in scores if score.sigma == sigma) for sigma in sigmas
    }


def noisy_psnr(
    images: Folder, sigmas: Sequence[float], kind: str = "gaussian"
) -> dict[float, float]:
    """Return the mean PSNR of the noisy images themselves."""
    scores = list(evaluate(lambda noisy, sigma: noisy, images, sigmas, kind=kind))
    return {
        sigma: fmean(score.psnr for score in scores if score.sigma == sigma) for sigma in sigmas
    }
