"""Error bars against what noise really does to a result, in docs/data/error-bars.csv.

    python benchmarks/error_bars.py --data SET12

For every image and noise level, the root mean square of the error bars is divided by two others:
by the spread of the result under perturbations of 0.01 sigma, which is what error bars mean, and
by its spread over new draws of the whole noise, which is what they are for. Rows that the file has
already are not measured again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, markdown
from tqdm import tqdm

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.images import read

CSV, PAGE = DATA / "error-bars.csv", DOCS / "quality.md"
LEVELS = (5.0, 25.0, 50.0)
PROBES, SMALL_DRAWS, DRAWS = 4, 2, 4
#: Side of the square in the middle of each image that is measured.
SIDE = 256
SMALL = 0.01
Floats = NDArray[np.float64]


def measured(clean: Floats, sigma: float) -> dict[str, str]:
    """Return both ratios for an image with noise of one level, which is known."""
    rng = np.random.default_rng(int(sigma))

    def denoised(image: Floats) -> Floats:
        return normeq.denoise(image, sigma, noise="gaussian")

    noisy = clean + rng.normal(0, sigma, clean.shape)
    result, std = normeq.denoise(noisy, sigma, noise="gaussian", return_std=True, probes=PROBES)
    moved = [
        (denoised(noisy + SMALL * rng.normal(0, sigma, clean.shape)) - result) / SMALL
        for _ in range(SMALL_DRAWS)
    ]
    draws = [denoised(clean + rng.normal(0, sigma, clean.shape)) for _ in range(DRAWS)]
    bias = np.mean(draws, axis=0) - clean
    found, small, full = (
        float(np.sqrt(square.mean()))
        for square in (std**2, np.square(moved), np.var(draws, axis=0, ddof=1))
    )
    squared_bias = float((bias**2).mean()) - full**2 / DRAWS
    return {
        "std": f"{found:.3f}",
        "of small noise": f"{found / small:.3f}",
        "of full noise": f"{found / full:.3f}",
        "bias": f"{max(squared_bias, 0.0) ** 0.5:.3f}",
    }


def middle(image: NDArray[np.uint8]) -> Floats:
    """Return the square in the middle of an image."""
    rows, columns = (slice((extent - SIDE) // 2, (extent + SIDE) // 2) for extent in image.shape)
    return image[rows, columns].astype(np.float64)


def table() -> str:
    """Return the range of both ratios at each level."""
    rows, lines = read_csv(CSV), []
    for sigma in dict.fromkeys(row["sigma"] for row in rows):
        of_level = [row for row in rows if row["sigma"] == sigma]
        cells = [[float(row[name]) for row in of_level] for name in list(of_level[0])[2:]]
        spans = [f"{min(cell):.2f} to {max(cell):.2f}" for cell in cells]
        lines.append([f"{float(sigma):g}", str(len(of_level)), *spans])
    header = ["sigma", "images", "error bars (rms)", "/ spread under 0.01 sigma"]
    return markdown([*header, "/ spread over full draws", "bias (rms)"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of clean gray images; none: table only")
    folder = parser.parse_args().data
    rows: list[dict[str, Any]] = list(read_csv(CSV))
    done = {(row["image"], float(row["sigma"])) for row in rows}
    paths = [] if folder is None else sorted(folder.glob("*.png"))
    for path, sigma in tqdm([(path, sigma) for sigma in LEVELS for path in paths]):
        if (path.stem, sigma) not in done:
            found = measured(middle(read(path)), sigma)
            rows.append({"image": path.stem, "sigma": sigma, **found})
            write_csv(CSV, sorted(rows, key=lambda row: (float(row["sigma"]), row["image"])))
    fill(PAGE, "error bars", table())


if __name__ == "__main__":
    main()
