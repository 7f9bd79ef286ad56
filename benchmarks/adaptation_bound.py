"""How much adapting could gain on Set12 if the noise level was known: adaptation-bound.csv.

    python benchmarks/adaptation_bound.py --set12 FOLDER

For each image with white noise of sigma 25, stated: the PSNR of the shipped network, of the network
adapted to the image, and of its teacher, whose results are what the network learns from. The table
goes to docs/adapt.md. Rows that the file holds are not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from adaptation import SIGMA, Case, cases
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, markdown

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.adaptation.noisy_planes import NoisyPlane
from normeq.adaptation.teacher import Teacher
from normeq.denoising.plane_noise import PlaneNoise
from normeq.images.array import ArraySource
from normeq.metrics import psnr
from normeq.nn import fuse

TABLE = DATA / "adaptation-bound.csv"
COLUMNS = ("plain", "adapted", "teacher")


def taught(noisy: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what the teacher of the shipped network makes of an image, square by square."""
    plane = NoisyPlane(
        ArraySource(noisy, "YX"), 0, 0, PlaneNoise(level=SIGMA), SIGMA, None, alike=(0,)
    )
    teacher = Teacher(fuse(normeq.load("default")), [plane], seed=0, level=1.0)
    clean = noisy.astype(np.float64)
    for number in range(len(teacher)):
        lesson = teacher.lesson(number)
        square = (lesson.target[0] + lesson.tile.origin) * lesson.tile.unit
        clean[lesson.cell.rows, lesson.cell.columns] = square
    return clean


def measure(case: Case) -> dict[str, str]:
    """Return the PSNR of an image before and after adapting, and that of the teacher."""
    noisy = case.noisy.astype(np.float32)
    tuned = normeq.adapt(noisy, sigma=SIGMA)
    results: dict[str, NDArray[Any]] = {
        "plain": normeq.denoise(noisy, SIGMA, model="default"),
        "adapted": normeq.denoise(noisy, SIGMA, model=tuned),
        "teacher": taught(noisy),
    }
    scores = {name: psnr(results[name] / 255, case.clean / 255) for name in COLUMNS}
    return {"image": case.name} | {name: f"{score:.3f}" for name, score in scores.items()}


def table(rows: list[dict[str, str]]) -> str:
    """Return the rows as a table, with their mean."""
    lines = [[row["image"], *(f"{float(row[name]):.2f}" for name in COLUMNS)] for row in rows]
    means = [f"{fmean(float(row[name]) for row in rows):.2f}" for name in COLUMNS]
    return markdown(["image", *COLUMNS], [*lines, ["**mean**", *means]])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set12", type=Path, required=True)
    options = parser.parse_args()
    rows = read_csv(TABLE) if TABLE.exists() else []
    for case in cases(argparse.Namespace(set12=options.set12, fmd=None, cc15=None)):
        if case.name not in {row["image"] for row in rows}:
            rows.append(measure(case))
            write_csv(TABLE, rows)
            print(rows[-1], flush=True)
    fill(DOCS / "adapt.md", "bound", table(rows))


if __name__ == "__main__":
    main()
