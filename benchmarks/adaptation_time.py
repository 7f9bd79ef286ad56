"""How fast adapting gains, on an image and a stack of 100 frames: docs/data/adaptation-time.csv.

    python benchmarks/adaptation_time.py

The images are parts of scikit-image's `brick`, in 16 bits with white noise of sigma 25 out of 255;
the noise is estimated or stated. The gain is the true one, measured on up to four frames.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import fmean

import numpy as np
import tifffile
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table
from skimage import data

import normeq
from normeq._support.tables import write_csv
from normeq.metrics import psnr

CSV, PAGE = DATA / "adaptation-time.csv", DOCS / "adapt.md"
# How many frames there are, and whether their noise is stated.
KINDS = {
    "one image": (1, False),
    "one image, sigma stated": (1, True),
    "stack of 100 frames": (100, False),
}
STEPS = (20, 40, 80, 160)
MEASURED = 4
SIGMA = 25
# Grey levels of the file for one of 255, and its offset.
GAIN, OFFSET = 20, 1000

Frames = NDArray[np.float32]


def scenes(count: int, rng: np.random.Generator) -> Frames:
    """Return parts of a wall, 512 x 512, with white at 255."""
    wall = data.brick().astype(np.float32)
    return np.stack([np.roll(wall, rng.integers(0, 512, 2), (0, 1)) for _ in range(count)])


def stored(frames: Frames) -> NDArray[np.uint16]:
    """Return frames as a camera would store them."""
    return np.rint(np.clip(OFFSET + GAIN * frames, 0, 65535)).astype(np.uint16)


def quality(noisy: NDArray[np.uint16], clean: Frames, model: object) -> float:
    """Return the mean PSNR of the first frames."""
    scores = []
    for frame, truth in zip(noisy[:MEASURED], clean, strict=False):
        result = normeq.denoise(frame, model=model, output_dtype=np.float32)
        scores.append(psnr((result - OFFSET) / GAIN / 255, truth / 255))
    return fmean(scores)


def rows(kind: str, count: int, stated: bool, folder: Path) -> list[dict[str, str]]:
    """Return the gain and the time for each number of steps."""
    rng = np.random.default_rng(0)
    clean = scenes(count, rng)
    noisy = stored(clean + SIGMA * rng.standard_normal(clean.shape, dtype=np.float32))
    path = folder / f"{count}.tif"
    tifffile.imwrite(path, noisy, imagej=True, metadata={"axes": "TYX"})
    before = quality(noisy, clean, "default")
    found = []
    for steps in STEPS:
        start = time.process_time()
        net = normeq.adapt(path, sigma=GAIN * SIGMA if stated else None, steps=steps)
        seconds = time.process_time() - start
        found.append(
            {
                "images": kind,
                "steps": str(steps),
                "CPU seconds": f"{seconds:.0f}",
                "new weights": "yes" if net.card["adapted"]["improved"] else "no",
                "gain (dB)": f"{quality(noisy, clean, net) - before:+.2f}",
            }
        )
        print(found[-1], flush=True)
    return found


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [row for kind, how in KINDS.items() for row in rows(kind, *how, Path(folder))]
    write_csv(CSV, found)
    fill(PAGE, "time", table(CSV))


if __name__ == "__main__":
    main()
