"""How much detail the images of folders have, by its scale: docs/data/detail.csv, a table.

    python benchmarks/detail.py --folder BSDS500=FOLDER --folder photographs=FOLDER \
        --samples default=FOLDER

With ``--folder`` it measures squares of the images as they are, with ``--samples`` the clean
patches that a recipe makes of them. A figure is the root of the mean power in a band of frequencies
(cycles a pixel): white noise of that standard deviation, where white is 255, has as much.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table

from normeq._support.tables import write_csv
from normeq.images.folder import read_folder, to_unit
from normeq.training import load_recipe
from normeq.training.data import Patches

CSV = DATA / "detail.csv"
SIDE = 128
BANDS = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5)
SAMPLES = 1000


def squares(folder: Path) -> Iterator[NDArray[np.float32]]:
    """Cut the images into squares, white at 1."""
    for image in read_folder(folder, 1, SIDE).images:
        for top in range(0, image.shape[1] - SIDE + 1, SIDE):
            for left in range(0, image.shape[2] - SIDE + 1, SIDE):
                yield to_unit(image[0, top : top + SIDE, left : left + SIDE])


def samples(recipe: str, folder: Path) -> Iterator[NDArray[np.float32]]:
    """Draw clean patches as a recipe does."""
    settings = load_recipe(recipe, [f"data.patch={SIDE}", "data.mixture=none"])
    patches = Patches(read_folder(folder, 1, SIDE).images, settings.data, settings.seed)
    for index in range(SAMPLES):
        yield patches.sample(index).target[0]


def spectrum(patches: Iterable[NDArray[np.float32]]) -> list[float]:
    """Return the root of the mean power in each band."""
    window = np.outer(np.hanning(SIDE), np.hanning(SIDE))
    window /= np.sqrt(np.mean(window**2))
    powers = [np.abs(np.fft.fft2(255 * (patch - patch.mean()) * window)) ** 2 for patch in patches]
    power = np.mean(powers, axis=0) / SIDE**2
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE)))
    return [
        float(np.sqrt(power[(low <= frequency) & (frequency < high)].mean()))
        for low, high in pairwise(BANDS)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--samples", action="append", default=[], metavar="RECIPE=FOLDER")
    given = parser.parse_args()
    folders = dict(item.split("=", 1) for item in given.folder)
    recipes = dict(item.split("=", 1) for item in given.samples)
    measured = {name: spectrum(squares(Path(folder))) for name, folder in folders.items()}
    measured |= {
        f"samples of `{name}`": spectrum(samples(name, Path(folder)))
        for name, folder in recipes.items()
    }
    bands = [f"{low:g} to {high:g}" for low, high in pairwise(BANDS)]
    rows = [
        {"images": name, **dict(zip(bands, (f"{x:.1f}" for x in roots), strict=True))}
        for name, roots in measured.items()
    ]
    write_csv(CSV, rows)
    fill(DOCS / "search.md", "detail", table(CSV))


if __name__ == "__main__":
    main()
