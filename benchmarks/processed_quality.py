"""How far the estimated error of processed photographs is off: docs/data/processed-quality.csv.

    python benchmarks/processed_quality.py --photos FOLDER

Colour photographs go through the simulated cameras of `processed_photographs`, and are denoised and
judged with their noise estimated, or given as a model fitted to the pair. The table shows the
logarithm of the true squared error relative to the estimate, without what is added to that for
processed photographs, and how often the whole interval holds the truth.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table
from processed_photographs import LEVELS, SHARES, photographs
from quality import fitted
from tqdm import tqdm

import normeq
from normeq._support.tables import write_csv
from normeq.adaptation.assessment import assess
from normeq.denoising.arrays import walk_over
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions

CSV, PAGE = DATA / "processed-quality.csv", DOCS / "quality.md"

Image = NDArray[np.float64]


def judged(noisy: Image, clean: Image, noise: Any) -> tuple[float, bool]:
    """Return the logarithm of the true error relative to the estimate, and whether it is inside."""
    walk = walk_over(noisy, Choice(), NoiseOptions(noise=noise), WalkOptions(), channel_axis=-1)
    result = assess(walk, NoiseOptions(noise=noise), probes=1)
    denoised = normeq.denoise(noisy, noise=noise, channel_axis=-1)
    true = math.sqrt(float(np.mean((denoised - clean) ** 2)))
    added, _ = result.level.processed
    report = result.report
    return 2 * math.log(true / report.rmse) + added, report.low <= true <= report.high


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=5, help="photographs of each kind")
    given = parser.parse_args()
    found: dict[str, list[tuple[float, bool]]] = {"given": [], "estimated": []}
    kinds = [(level, share) for level in LEVELS for share in SHARES]
    for level, share in tqdm(kinds):
        for pair in photographs(given.photos, given.count, level, share):
            noisy, clean = (255 * np.moveaxis(image, 0, -1).astype(np.float64) for image in pair)
            found["given"].append(judged(noisy, clean, fitted(noisy, clean)))
            found["estimated"].append(judged(noisy, clean, "auto"))
    rows = [
        {
            "noise": noise,
            "photographs": len(cases),
            "log of true / estimated error, mean": f"{fmean(log for log, _ in cases):.2f}",
            "spread": f"{stdev(log for log, _ in cases):.2f}",
            "truth inside": f"{fmean(inside for _, inside in cases):.0%}",
        }
        for noise, cases in found.items()
    ]
    write_csv(CSV, rows)
    fill(PAGE, "processed", table(CSV))


if __name__ == "__main__":
    main()
