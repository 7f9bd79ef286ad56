"""What to tell about the noise of processed photographs: docs/data/processed-photographs.csv.

    python benchmarks/processed_photographs.py --photos FOLDER

Colour photographs go through a simulated camera, which may smooth what it takes for noise, as real
ones do. A bilateral filter leaves least noise in smooth areas, where the noise is measured.
`normeq.denoise` tells the network a multiple of what it measures; here are other multiples.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table
from skimage.restoration import denoise_bilateral
from tqdm import tqdm

import normeq
from normeq._support.tables import write_csv
from normeq.denoising.told_noise import PROCESSED
from normeq.images.folder import read_folder, to_unit
from normeq.metrics import psnr
from normeq.training.camera import as_jpeg, photographed

CSV, PAGE = DATA / "processed-photographs.csv", DOCS / "noise.md"
LEVELS = (0.03, 0.08)
SHARES = (0.0, 0.6, 0.85)
MULTIPLES = (1.0, 1.2, 1.4, 1.7, 2.0)
SIDE = 256
QUALITY = 95

Image = NDArray[np.float32]


class Photograph(NamedTuple):
    """What comes out of a camera, and what would without the noise of its sensor."""

    noisy: Image
    clean: Image


def smoothed(image: Image, share: float, level: float) -> Image:
    """Mix an image with its copy behind a bilateral filter for noise of a level."""
    if not share:
        return image
    channels_last = np.moveaxis(np.clip(image, 0, 1), 0, -1)
    filtered = denoise_bilateral(
        channels_last, sigma_color=2 * level, sigma_spatial=1.5, channel_axis=-1
    )
    mixed: Image = (1 - share) * image + share * np.moveaxis(filtered, -1, 0)
    return mixed.astype(np.float32)


def photographs(folder: Path, count: int, level: float, share: float) -> Iterator[Photograph]:
    """Take pictures of the middle of some images."""
    images = read_folder(folder, 3).images
    for seed, image in enumerate(images[:: max(1, len(images) // count)][:count]):
        top, left = ((extent - SIDE) // 2 for extent in image.shape[1:])
        scene = to_unit(image[:, top : top + SIDE, left : left + SIDE])
        clean, noisy = photographed(scene, level, np.random.default_rng(seed))
        spread = float(np.std(noisy - clean))
        noisy, clean = (smoothed(each, share, spread) for each in (noisy, clean))
        yield Photograph(as_jpeg(noisy, QUALITY), clean)


def row(level: float, share: float, taken: list[Photograph]) -> dict[str, str]:
    """Return the mean PSNR of some photographs, for every multiple of the measured level."""
    measured, true = [], []
    scores: dict[float, list[float]] = {multiple: [] for multiple in MULTIPLES}
    for noisy, clean in tqdm(taken, leave=False):
        measured.append(float(np.mean(normeq.estimate_sigma(noisy))))
        true.append(float(np.std(noisy - clean)))
        for multiple, found in scores.items():
            result = normeq.denoise(noisy, channel_axis=0, strength=multiple / PROCESSED)
            found.append(psnr(result, clean))
    return {
        "noise of the sensor": f"{255 * level:.0f}",
        "smoothed by the camera": f"{share:.0%}",
        "measured / true level": f"{fmean(m / t for m, t in zip(measured, true, strict=True)):.2f}",
        "noisy": f"{fmean(psnr(noisy, clean) for noisy, clean in taken):.2f}",
        **{f"told {multiple:g} x": f"{fmean(found):.2f}" for multiple, found in scores.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=8, help="photographs of each kind")
    given = parser.parse_args()
    rows = [
        row(level, share, list(photographs(given.photos, given.count, level, share)))
        for level in LEVELS
        for share in SHARES
    ]
    write_csv(CSV, rows)
    fill(PAGE, "processed", table(CSV))


if __name__ == "__main__":
    main()
