"""Robustness for noise that is not Gaussian: uniform, Laplace and Rayleigh."""

from __future__ import annotations

from functools import partial

from normeq.reproduce import noise_generalization
from normeq.reproduce.denoisers import (
    ARCHITECTURES,
    TITLES,
    TRAINED_AT,
    PaperDenoiser,
    largest_rise,
)
from normeq.reproduce.measuring import noisy_psnr, psnr_by_sigma
from normeq.reproduce.noise_generalization import SIGMAS, Measured, as_rows, claims, draw
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import usable
from normeq.reproduce.workspace import Workspace

KINDS = ("uniform", "laplace", "rayleigh")


def architectures(scale: Scale) -> tuple[str, ...]:
    """Return which architectures are trained: both at the paper's scale."""
    return ARCHITECTURES if scale is Scale.PAPER else ("fdncnn",)


def networks(scale: Scale) -> list[PaperDenoiser]:
    """List the blind networks, trained at one level of each kind of noise."""
    return [
        network
        for kind in KINDS
        for network in noise_generalization.networks(scale, architectures(scale), kind)
    ]


def reproduce(workspace: Workspace) -> None:
    """Measure networks trained on each kind of noise on Set12, at other levels of that noise."""
    images = workspace.images("set12", "noise-families")
    sigmas = SIGMAS[workspace.scale]
    rows, judged = [], []
    for architecture in architectures(workspace.scale):
        measured: dict[str, Measured] = {}
        noisy = {kind: noisy_psnr(images, sigmas, kind) for kind in KINDS}
        for kind in KINDS:
            every = noise_generalization.networks(workspace.scale, [architecture], kind)
            listed = usable(every, workspace)
            results = {
                (each.form, each.seed): psnr_by_sigma(each, workspace, images, sigmas, kind)
                for each in listed
            }
            measured[kind] = results
            title = f"{TITLES[architecture]}, {kind} noise"
            rows += as_rows(title, results, noisy[kind])
            judged += claims(title, results, largest_rise(listed, workspace))
        workspace.figure(f"noise-families-{architecture}", partial(draw, measured, noisy))
    workspace.table("noise-families", rows)
    workspace.judge("noise-families", judged)
    workspace.say(f"every network was trained at sigma {TRAINED_AT} alone")
