"""Real noise: PSNR, SSIM and time on pairs of noisy and clean images, in docs/data/real-noise.csv.

    python benchmarks/real_noise.py --fmd FOLDER --cc15 FOLDER

FMD holds 8-bit fluorescence images of the same name in ``raw`` and ``gt``; of two raw files with
the same content one counts. CC15 holds camera images in colour, named ``*_real.png`` and
``*_mean.png``. No parameter was chosen on these pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, markdown
from tqdm import tqdm

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.images import read
from normeq.metrics import psnr, ssim

METHODS: dict[str, dict[str, Any] | None] = {
    "noisy": None,
    "default, gaussian": {"noise": "gaussian"},
    "default, auto": {},
    "default, learned": {"noise": "learned"},
    "BM3D with VST": {"model": "bm3d"},
}


class Pair(NamedTuple):
    """A noisy image of real noise, and the truth, with white at 255."""

    group: str
    noisy: NDArray[np.uint8]
    clean: NDArray[np.uint8]


def fmd_pairs(folder: Path) -> Iterator[Pair]:
    """Yield the pairs of FMD, by microscope."""
    seen: set[bytes] = set()
    for path in sorted((folder / "raw").iterdir()):
        noisy, clean = read(path), read(folder / "gt" / path.name)
        if noisy.tobytes() not in seen:
            seen.add(noisy.tobytes())
            yield Pair(f"FMD {path.name.split('_')[0]}", noisy, clean)


def cc15_pairs(folder: Path) -> Iterator[Pair]:
    """Yield the pairs of CC15."""
    for path in sorted(folder.glob("*_real.png")):
        yield Pair("CC15", read(path), read(path.with_name(path.name.replace("_real", "_mean"))))


def denoised(noisy: NDArray[np.uint8], options: dict[str, Any] | None) -> NDArray[np.float32]:
    """Denoise an image as a user would, and return it in floating point."""
    image = noisy.astype(np.float32)
    if options is None:
        return image
    return normeq.denoise(image, channel_axis=-1 if image.ndim == 3 else None, **options)


Score = tuple[float, float, float]


def score(pair: Pair, options: dict[str, Any] | None) -> Score:
    """Return the PSNR and SSIM of one result, and the seconds of a processor that it took."""
    start = time.process_time()
    result = denoised(pair.noisy, options) / 255
    seconds = time.process_time() - start
    truth = pair.clean / 255
    return psnr(result, truth), ssim(result, truth), seconds


def measure(
    pairs: list[Pair], methods: dict[str, dict[str, Any] | None], jobs: int
) -> list[dict[str, Any]]:
    """Return a row for each group and method: means over its images."""
    rows = []
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for name, options in methods.items():
            scores: dict[str, list[Score]] = {}
            found = tqdm(pool.map(score, pairs, repeat(options)), name, len(pairs), leave=False)
            for pair, each in zip(pairs, found, strict=True):
                scores.setdefault(pair.group, []).append(each)
            scores |= _together(scores)
            rows += [row(group, name, every) for group, every in scores.items()]
            print(*rows[-len(scores) :], sep="\n", flush=True)
    return rows


def _together(scores: dict[str, list[Score]]) -> dict[str, list[Score]]:
    """Return all images of FMD as one group."""
    every = [score for group, found in scores.items() if group.startswith("FMD") for score in found]
    return {"FMD, all": every} if every else {}


def row(group: str, method: str, scores: list[Score]) -> dict[str, Any]:
    """Return the means of some scores."""
    psnrs, ssims, seconds = zip(*scores, strict=True)
    return {
        "images": group,
        "count": len(scores),
        "method": method,
        "psnr": f"{fmean(psnrs):.2f}",
        "ssim": f"{fmean(ssims):.4f}",
        "seconds": f"{fmean(seconds):.2f}",
    }


def table() -> str:
    """Return the PSNR of every method, a column for each group."""
    rows = read_csv(DATA / "real-noise.csv")
    groups = list(dict.fromkeys(f"{r['images']} ({r['count']})" for r in rows))
    lines = []
    for method in dict.fromkeys(r["method"] for r in rows):
        cells = {f"{r['images']} ({r['count']})": r for r in rows if r["method"] == method}
        # "FMD, all" would count its images twice.
        apart = [r for r in cells.values() if not r["images"].endswith(", all")]
        seconds = fmean([float(r["seconds"]) for r in apart], [float(r["count"]) for r in apart])
        scores = [cells[group]["psnr"] if group in cells else "" for group in groups]
        lines.append([method, *scores, f"{seconds:.1f}"])
    return markdown(["method", *groups, "seconds an image"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fmd", type=Path)
    parser.add_argument("--cc15", type=Path)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="images at once")
    given = parser.parse_args()
    pairs = [*(fmd_pairs(given.fmd) if given.fmd else ())]
    pairs += [*(cc15_pairs(given.cc15) if given.cc15 else ())]
    chosen = {name: METHODS[name] for name in given.methods}
    rows = measure(pairs, chosen, given.jobs)
    measured = {(r["images"], r["method"]) for r in rows}
    before = read_csv(DATA / "real-noise.csv")
    kept = [r for r in before if (r["images"], r["method"]) not in measured]
    write_csv(DATA / "real-noise.csv", [*kept, *rows])
    fill(DOCS / "noise.md", "real-noise", table())


if __name__ == "__main__":
    main()
