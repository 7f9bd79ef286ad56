"""How well Bayer mosaics are told from other images.

    python benchmarks/mosaics.py --photos PHOTOS --others FOLDER [FOLDER ...]

makes mosaics of the colour photographs of a folder, in all four patterns and with noise, and
counts those that are recognised. Then it counts false alarms: on the photographs upsampled by
two and with alternating gains of rows or columns, and on every image of the other folders (and
their subfolders), plane by plane and in gray. The table goes into docs/noise.md, too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table
from scipy import ndimage
from tqdm import tqdm

from normeq._support.tables import write_csv
from normeq.images import format_of, read
from normeq.noise.mosaic import is_bayer_mosaic

Floats = NDArray[np.float64]

PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")
SIGMAS = (0.0, 5.0, 20.0)
GAINS = (1.05, 1.5)


def images(folder: Path) -> Iterator[Floats]:
    """Yield the images of a folder and its subfolders, samples last."""
    for path in tqdm(sorted(folder.rglob("*")), desc=folder.name):
        if path.is_file() and format_of(path) is not None:
            pixels = read(path).astype(np.float64)
            yield pixels if pixels.ndim == 3 else pixels[..., None]


def mosaic(photograph: Floats, pattern: str) -> Floats:
    plane = np.empty(photograph.shape[:2])
    for letter, (row, column) in zip(pattern, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
        plane[row::2, column::2] = photograph[row::2, column::2, "RGB".index(letter)]
    return plane


def variations(image: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield what must not be taken for a mosaic."""
    gray = image.mean(2)
    quarter = gray[: gray.shape[0] // 2, : gray.shape[1] // 2]
    yield "upsampled, nearest", np.kron(quarter, np.ones((2, 2)))
    yield "upsampled, linear", ndimage.zoom(quarter, 2, order=1)
    yield "upsampled, cubic", ndimage.zoom(quarter, 2, order=3)
    for gain in GAINS:
        for name, step in (("column", np.s_[:, 1::2]), ("row", np.s_[1::2, :])):
            striped = gray.copy()
            striped[step] *= gain
            yield f"alternating {name} gains", striped


def caught(photos: Path) -> list[dict[str, Any]]:
    found: Counter[float] = Counter()
    total: Counter[float] = Counter()
    for number, photograph in enumerate(images(photos)):
        if photograph.shape[2] != 3:
            continue
        for pattern in PATTERNS:
            plane = mosaic(photograph, pattern)
            noise = np.random.default_rng(number).standard_normal(plane.shape)
            for sigma in SIGMAS:
                found[sigma] += is_bayer_mosaic(plane + sigma * noise)
                total[sigma] += 1
    return [
        {"images": f"mosaics, sigma {sigma:g}", "count": total[sigma], "recognised": found[sigma]}
        for sigma in SIGMAS
    ]


def false_alarms(photos: Path, folders: list[Path]) -> list[dict[str, Any]]:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for image in images(photos):
        for name, plane in variations(image):
            found[name] += is_bayer_mosaic(plane)
            total[name] += 1
    for folder in folders:
        for image in images(folder):
            planes = [image[..., channel] for channel in range(image.shape[2])]
            for name, plane in [
                *(("channels", plane) for plane in planes),
                ("gray", image.mean(2)),
            ]:
                found[name] += is_bayer_mosaic(plane)
                total[name] += 1
    return [{"images": name, "count": total[name], "recognised": found[name]} for name in total]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, required=True, help="folder of colour photographs")
    parser.add_argument("--others", type=Path, nargs="+", required=True, help="folders of images")
    parser.add_argument("--out", type=Path, default=DATA / "mosaics.csv")
    options = parser.parse_args()
    rows = caught(options.photos) + false_alarms(options.photos, options.others)
    write_csv(options.out, rows)
    fill(DOCS / "noise.md", "mosaics", table(options.out))
    for row in rows:
        print(*row.values(), sep="  ")


if __name__ == "__main__":
    main()
