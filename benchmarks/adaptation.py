"""What adapting and ensembles gain, image by image, in docs/data/adaptation.csv and docs/adapt.md.

    python benchmarks/adaptation.py --set12 FOLDER --fmd FOLDER --cc15 FOLDER

Set12 gets white noise of sigma 25, which the program has to estimate; FMD and CC15 hold real noise.
Each image is adapted to on its own, with the defaults. Of FMD and CC15, every n-th image is taken
(``--every``), in the order of their names. Ensembles, which take most of the time, can be left out
(``--no-ensemble``). Rows that the file holds are not computed again, so
that an interrupted run goes on; ``--share 0/2`` computes every second image, for two processes.
A first run on FMD showed that dark images need a check of the noise estimate; its thresholds were
set on synthetic dark images.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, markdown
from real_noise import cc15_pairs, fmd_pairs

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.images import read
from normeq.metrics import psnr

TABLE = DATA / "adaptation.csv"
SIGMA = 25.0


class Case(NamedTuple):
    """A noisy image and the truth, with white at 255."""

    group: str
    name: str
    noisy: NDArray[Any]
    clean: NDArray[Any]


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the images that were asked for."""
    if options.set12:
        for path in sorted(options.set12.glob("*.png")):
            clean = read(path).astype(np.float64)
            noise = np.random.default_rng(0).normal(0.0, SIGMA, clean.shape)
            yield Case("Set12", path.stem, clean + noise, clean)
    for group, pairs in (
        ("FMD", fmd_pairs(options.fmd) if options.fmd else ()),
        ("CC15", cc15_pairs(options.cc15) if options.cc15 else ()),
    ):
        for number, pair in enumerate(pairs):
            if number % options.every == 0:
                yield Case(group, f"{pair.group} {number + 1}", pair.noisy, pair.clean)


def measure(case: Case, has_ensemble: bool) -> dict[str, Any]:
    """Return the PSNR of an image with and without adapting and, if asked for, ensembles."""
    image = case.noisy.astype(np.float32)
    axes = "YXS" if image.ndim == 3 else "YX"

    def score(**how: Any) -> float:
        return psnr(normeq.denoise(image, axes=axes, **how) / 255, case.clean / 255)

    plain = score()
    ensemble = score(ensemble=8) if has_ensemble else math.nan
    start, cpu = time.perf_counter(), time.process_time()
    try:
        tuned = normeq.adapt(image, axes=axes)
        weights = "new" if tuned.card["adapted"]["improved"] else "original"
    except normeq.NormeqError as refusal:
        print(f"{case.name}: {refusal}")
        weights = "refused"
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    adapted = score(model=tuned) if weights == "new" else plain
    both = score(model=tuned, ensemble=8) if weights == "new" and has_ensemble else ensemble
    return {
        "images": case.group,
        "image": case.name,
        "noisy": f"{psnr(image / 255, case.clean / 255):.3f}",
        "plain": f"{plain:.3f}",
        "ensemble": f"{ensemble:.3f}",
        "adapted": f"{adapted:.3f}",
        "both": f"{both:.3f}",
        "weights": weights,
        "cpu_seconds": f"{cpu:.0f}",
        "seconds": f"{seconds:.0f}",
    }


def add(row: dict[str, Any]) -> None:
    """Add a row to the table, sorted by set and name, as another process may have done."""
    rows = [*(read_csv(TABLE) if TABLE.exists() else []), row]
    order = ["Set12", "FMD", "CC15"]
    rows.sort(key=lambda each: (order.index(each["images"]), each["image"]))
    write_csv(TABLE, rows)


def table() -> str:
    """Return the rows of Set12 and the means of the other sets."""
    rows = read_csv(TABLE)
    lines = [_line(row["image"], [row]) for row in rows if row["images"] == "Set12"]
    for group in dict.fromkeys(row["images"] for row in rows):
        these = [row for row in rows if row["images"] == group]
        lines.append(_line(f"**{group}, mean of {len(these)}**", these))
    heads = ["image", "plain", "ensemble 8", "adapted", "both", "new weights", "CPU seconds"]
    return markdown(heads, lines)


def _line(name: str, rows: list[dict[str, str]]) -> list[str]:
    def mean(column: str, digits: int = 2) -> str:
        value = fmean(float(row[column]) for row in rows)
        return "" if math.isnan(value) else f"{value:.{digits}f}"

    kept = sum(row["weights"] == "new" for row in rows)
    new = ("yes" if kept else "no") if len(rows) == 1 else f"{kept} of {len(rows)}"
    scores = [mean(column) for column in ("plain", "ensemble", "adapted", "both")]
    return [name, *scores, new, mean("cpu_seconds", 0)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("set12", "fmd", "cc15"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--no-ensemble", action="store_true")
    parser.add_argument("--share", default="0/1")
    options = parser.parse_args()
    index, count = (int(number) for number in options.share.split("/"))
    for number, case in enumerate(cases(options)):
        done = read_csv(TABLE) if TABLE.exists() else []
        known = any((row["images"], row["image"]) == (case.group, case.name) for row in done)
        if number % count == index and not known:
            row = measure(case, not options.no_ensemble)
            print(row, flush=True)
            add(row)
    fill(DOCS / "adapt.md", "adaptation", table())


if __name__ == "__main__":
    main()
