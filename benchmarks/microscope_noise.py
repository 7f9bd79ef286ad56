"""What to tell about correlated noise of microscopes: docs/data/microscope-noise.csv.

    python benchmarks/microscope_noise.py --photos FOLDER

Synthetic scenes, photographs that look as if a microscope had taken them, and photographs as they
are get noise of random colour, without and with a weak part that reaches far. The network is told
multiples of the level that is measured. Beside the PSNR, the table shows how much is left in the
darkest square of each image, as a share of the level.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table
from scenes import microscopy_scenes
from scipy import ndimage
from tqdm import tqdm

import normeq
from normeq._support.tables import write_csv
from normeq.denoising.told_noise import CORRELATED
from normeq.images.folder import read_folder, to_unit
from normeq.metrics import psnr
from normeq.training.noise_colors import far_reaching_noise, random_colored_noise
from normeq.training.optics import seen_by_microscope

CSV, PAGE = DATA / "microscope-noise.csv", DOCS / "noise.md"
WIDTHS = (0.5, 1.0)
LEVEL = np.float32(0.06)
MULTIPLES = (1.0, 1.1, 1.2, 1.3, 1.5)
SIDE = 256
DARK = 64

Image = NDArray[np.float32]


def contents(folder: Path, count: int) -> dict[str, list[Image]]:
    """Return images of each kind, with white at 1."""
    images = read_folder(folder, 1).images
    photographs = [
        to_unit(image[:, :SIDE, :SIDE]) for image in images[:: max(1, len(images) // count)][:count]
    ]
    return {
        "scenes": [
            (scene[:SIDE, :SIDE] / scene.max()).astype(np.float32)
            for scene in microscopy_scenes(count)
        ],
        "photographs, as by a microscope": [
            seen_by_microscope(image, np.random.default_rng(seed))[0]
            for seed, image in enumerate(photographs)
        ],
        "photographs": [image[0] for image in photographs],
    }


def noise(far: bool, seed: int) -> Image:
    """Draw noise whose near part has unit variance."""
    rng = np.random.default_rng(seed)
    shape = (1, SIDE, SIDE)
    drawn = random_colored_noise(shape, WIDTHS, rng)[0]
    return (drawn + far_reaching_noise(shape, rng) if far else drawn)[0]


def darkest(image: Image) -> tuple[slice, slice]:
    """Return the square with the lowest mean."""
    half = DARK // 2
    means = ndimage.uniform_filter(image, DARK)[half:-half, half:-half]
    row, column = np.unravel_index(means.argmin(), means.shape)
    return slice(row, row + DARK), slice(column, column + DARK)


def row(kind: str, far: bool, images: list[Image]) -> dict[str, str]:
    """Return the mean PSNR, and what is left in the dark, for every multiple."""
    measured = []
    scores: dict[float, list[float]] = {multiple: [] for multiple in MULTIPLES}
    left: dict[float, list[float]] = {multiple: [] for multiple in MULTIPLES}
    for seed, clean in enumerate(tqdm(images, leave=False)):
        added = LEVEL * noise(far, seed)
        noisy = clean + added
        measured.append(float(normeq.estimate_sigma(noisy)) / float(added.std()))
        dark = darkest(clean)
        for multiple in MULTIPLES:
            result = normeq.denoise(noisy, strength=multiple / CORRELATED)
            scores[multiple].append(psnr(result, clean))
            left[multiple].append(float(np.std((result - clean)[dark]) / LEVEL))
    return {
        "content": kind,
        "reaches far": "yes" if far else "no",
        "measured / true level": f"{fmean(measured):.2f}",
        **{
            f"told {multiple:g} x": f"{fmean(scores[multiple]):.2f} ({fmean(left[multiple]):.3f})"
            for multiple in MULTIPLES
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=6, help="images of each kind")
    given = parser.parse_args()
    rows = [
        row(kind, far, images)
        for kind, images in contents(given.photos, given.count).items()
        for far in (False, True)
    ]
    write_csv(CSV, rows)
    fill(PAGE, "microscope", table(CSV))


if __name__ == "__main__":
    main()
