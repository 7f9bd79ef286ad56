"""The paper's table on raw photographs: real noise, by a variance-stabilising transformation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq import images
from normeq.metrics import psnr, ssim
from normeq.noise import GeneralizedAnscombe, estimate_noise, stabilisation_of
from normeq.noise.stabilisation import Stabilisation
from normeq.reproduce.darmstadt import denoised_boxes, read_darmstadt, write_submission
from normeq.reproduce.denoisers import (
    ARCHITECTURES,
    PAPER_FORMS,
    REPEATED,
    TITLES,
    PaperDenoiser,
    largest_rise,
    with_seeds,
)
from normeq.reproduce.measuring import image_function
from normeq.reproduce.normalization_sweep import fluorescence_pairs
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import usable
from normeq.reproduce.verdicts import Claim, are_equal, spread_of
from normeq.reproduce.workspace import Unavailable, Workspace

Floats = NDArray[np.float64]
Function = Callable[[Floats, float | None], Floats]

#: The paper's figures on the Darmstadt set: PSNR and SSIM.
PAPER = {
    ("drunet", "ordinary"): (47.58, 0.9762),
    ("drunet", "scale-equiv"): (47.59, 0.9763),
    ("drunet", "norm-equiv"): (47.57, 0.9762),
    ("fdncnn", "ordinary"): (47.37, 0.9754),
    ("fdncnn", "scale-equiv"): (47.31, 0.9754),
    ("fdncnn", "norm-equiv"): (47.35, 0.9753),
}
#: The largest distance between two of its variants.
_LARGEST_GAP = 0.06
_IMAGES = {Scale.TINY: 2, Scale.SMALL: 12, Scale.PAPER: 48}
_SIDES = {Scale.TINY: 32, Scale.SMALL: 256, Scale.PAPER: 512}

#: Noisy image and truth, each a list of planes, by name.
Pairs = dict[str, tuple[list[Floats], list[Floats]]]
#: PSNR and SSIM by architecture, form, seed and set.
Scores = dict[tuple[str, str, int, str], tuple[float, float]]


def networks(scale: Scale) -> list[PaperDenoiser]:
    """List the non-blind networks, trained on white Gaussian noise alone."""
    return with_seeds(
        [PaperDenoiser(a, form, blind=False) for a in ARCHITECTURES for form in PAPER_FORMS]
    )


def reproduce(workspace: Workspace) -> None:
    """Measure stabilised real images; write files for the Darmstadt benchmark if it is there."""
    sets = dict(_sets(workspace))
    transforms = {
        (name, image): [stabilisation_of(estimate_noise(plane)) for plane in noisy]
        for name, pairs in sets.items()
        for image, (noisy, _) in pairs.items()
    }
    listed = usable(networks(workspace.scale), workspace)
    scores: Scores = {}
    for each in listed:
        function = image_function(each.network(workspace))
        for name, pairs in sets.items():
            found = [
                _score(
                    list(map(partial(stabilised, function), noisy, transforms[name, image])), clean
                )
                for image, (noisy, clean) in pairs.items()
            ]
            scores[each.architecture, each.form, each.seed, name] = _means(found)
        if each.seed == 0:
            _submit(workspace, each, function)
    workspace.table("raw-table", _rows(scores, sets))
    claims = []
    for architecture in ARCHITECTURES:
        own = [each for each in listed if each.architecture == architecture]
        rising = largest_rise(own, workspace)
        claims += [_claim(scores, architecture, name, rising) for name in sets]
    workspace.judge("raw-table", claims)


def stabilised(function: Function, plane: Floats, transform: Stabilisation) -> Floats:
    """Denoise a plane after a transform that brings its noise to level 1, and go back.

    Between the two the plane fills [0, 1], the range of training.
    """
    stable = transform.forward(plane)
    low, high = float(stable.min()), float(stable.max())
    if low == high:
        return plane
    output = function((stable - low) / (high - low), 1 / (high - low))
    return transform.inverse(output * (high - low) + low)


def _score(planes: list[Floats], clean: list[Floats]) -> tuple[float, float]:
    """Return PSNR and SSIM of a gray or colour image."""
    result, truth = np.stack(planes, -1), np.stack(clean, -1)
    if len(clean) == 1:
        result, truth = result[..., 0], truth[..., 0]
    return psnr(result, truth), ssim(result, truth)


def _means(scores: list[tuple[float, float]]) -> tuple[float, float]:
    return fmean(value for value, _ in scores), fmean(value for _, value in scores)


def _sets(workspace: Workspace) -> Iterator[tuple[str, Pairs]]:
    """Yield the sets of real pairs that are there."""
    count, side = _IMAGES[workspace.scale], _SIDES[workspace.scale]
    readers: dict[str, Callable[[], Pairs]] = {
        "fmd": lambda: {
            name: ([noisy], [clean])
            for name, (noisy, clean) in fluorescence_pairs(
                workspace, "raw-table", count, side
            ).items()
        },
        "cc15": lambda: _camera_pairs(workspace, side),
    }
    found = 0
    for name, read in readers.items():
        try:
            pairs = read()
        except Unavailable as missing:
            workspace.say(f"skipped: {missing}")
            continue
        found += 1
        yield name, pairs
    if not found:
        raise Unavailable("raw-table needs one of the sets fmd, cc15 in --data.")


def _camera_pairs(workspace: Workspace, side: int) -> Pairs:
    """Read camera images with their truth, in central crops, white at 1."""
    folder = workspace.folder("cc15", "raw-table")
    names = sorted(path.name.removesuffix("_real.png") for path in folder.glob("*_real.png"))
    if not names:
        raise Unavailable(f"raw-table needs pairs NAME_real.png, NAME_mean.png in '{folder}'.")
    return {
        name: (
            _planes(folder / f"{name}_real.png", side),
            _planes(folder / f"{name}_mean.png", side),
        )
        for name in names
    }


def _planes(path: Path, side: int) -> list[Floats]:
    pixels = images.read(path)
    top, left = (max(length - side, 0) // 2 for length in pixels.shape[:2])
    cut = pixels[top : top + side, left : left + side] / np.iinfo(pixels.dtype).max
    return [cut] if cut.ndim == 2 else [cut[..., channel] for channel in range(cut.shape[2])]


def _submit(workspace: Workspace, each: PaperDenoiser, function: Function) -> None:
    """Write what the Darmstadt benchmark wants, if the set is there."""
    try:
        folder = workspace.folder("dnd", "raw-table")
    except Unavailable:
        return

    def denoise(plane: Floats, gain: float, base: float) -> Floats:
        read_noise = float(np.sqrt(max(base, 0.0)))
        return stabilised(function, plane, GeneralizedAnscombe(gain, base, read_noise))

    out = workspace.out / f"dnd-{each.architecture}-{each.form}"
    for image in read_darmstadt(folder):
        write_submission(out, image.number, denoised_boxes(image, denoise))
    workspace.say(f"{out}: files for the Darmstadt benchmark, which keeps the truth")


def _rows(scores: Scores, sets: dict[str, Pairs]) -> list[dict[str, Any]]:
    def cells(found: dict[str, tuple[float, float]]) -> dict[str, str]:
        return {
            f"{name} {measure}": f"{value:.{digits}f}"
            for name, values in found.items()
            for measure, value, digits in zip(("PSNR", "SSIM"), values, (2, 4), strict=True)
        }

    noisy = {
        name: _means([_score(image, truth) for image, truth in pairs.values()])
        for name, pairs in sets.items()
    }
    columns = ("paper, DND: PSNR", "paper, DND: SSIM")
    rows: list[dict[str, Any]] = [
        {"network": "noisy", "form": "", **cells(noisy), **dict.fromkeys(columns, "")}
    ]
    for (architecture, form), paper in PAPER.items():
        found = {name: _means(_of(scores, architecture, form, name)) for name in sets}
        published = dict(zip(columns, paper, strict=True))
        rows.append({"network": TITLES[architecture], "form": form, **cells(found), **published})
    return rows


def _of(scores: Scores, architecture: str, form: str, name: str) -> list[tuple[float, float]]:
    """Return the scores of all seeds."""
    wanted = (architecture, form, name)
    return [score for (a, f, _, n), score in scores.items() if (a, f, n) == wanted]


def _claim(scores: Scores, architecture: str, name: str, rising: float) -> Claim:
    def values(form: str) -> list[float]:
        return [value for value, _ in _of(scores, architecture, form, name)]

    means = [fmean(values(form)) for form in PAPER_FORMS]
    gap, spread = max(means) - min(means), spread_of(values(REPEATED))
    return Claim(
        f"{TITLES[architecture]}: with stabilised variance, the variants are equal on real noise",
        f"within {_LARGEST_GAP:g} dB on DND",
        f"within {gap:.2f} dB on {name}",
        are_equal(gap, _LARGEST_GAP, spread, rising),
        f"spread over seeds {spread:.3f} dB; the curves rose {rising:.2f} dB in the last fifth; "
        "noise parameters estimated from each image",
    )
