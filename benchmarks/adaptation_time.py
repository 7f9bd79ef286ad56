"""How long adapting takes to gain most of what it gains: adaptation-time.csv and its table.

    python benchmarks/adaptation_time.py

On a picture of 512 x 512 pixels that comes with scikit-image, with white noise of sigma 25, and on
a stack of 100 such frames of 16 bits, in which the scene moves. The noise is estimated. Seconds are
those of one core.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, markdown
from skimage import data

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.adaptation import tuning_job
from normeq.metrics import psnr

CSV = DATA / "adaptation-time.csv"
SIGMA = 25.0
FRAMES = 100
# From gray values to those of 16 bits, with room for the noise.
GAIN, OFFSET = 128, 8192


class Checks(logging.Handler):
    """Notes the step, the estimated gain and the seconds so far of each check."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[tuple[int, float, float]] = []
        self._start = time.process_time()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("step ") and isinstance(record.args, tuple):
            step, now, before = (float(str(each)) for each in record.args[:3])
            gain = 20 * float(np.log10(before / now))
            self.found.append((int(step), gain, time.process_time() - self._start))


def images() -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return the noisy image and the noisy stack, each with its truth."""
    clean = data.brick().astype(np.float64)
    rng = np.random.default_rng(0)
    moving = np.stack([np.roll(clean, 3 * frame, 1) for frame in range(FRAMES)])
    stack = rng.normal(moving, SIGMA) * GAIN + OFFSET
    return {
        "one image": (rng.normal(clean, SIGMA).astype(np.float32), clean),
        f"{FRAMES} frames of 16 bits": (np.round(stack).astype(np.uint16), moving),
    }


def true_psnr(noisy: NDArray[Any], clean: NDArray[Any], model: Any) -> float:
    """Return the PSNR of the last frame."""
    frame = normeq.denoise(noisy if noisy.ndim == 2 else noisy[-1], model=model).astype(np.float64)
    values = frame if noisy.ndim == 2 else (frame - OFFSET) / GAIN
    return psnr(values / 255, (clean if clean.ndim == 2 else clean[-1]) / 255)


def main() -> None:
    torch.set_num_threads(1)
    logger = logging.getLogger(tuning_job.__name__)
    logger.setLevel(logging.INFO)
    rows = []
    for name, (noisy, clean) in images().items():
        checks = Checks()
        logger.addHandler(checks)
        tuned = normeq.adapt(noisy, axes="YX" if noisy.ndim == 2 else "TYX")
        logger.removeHandler(checks)
        gained = true_psnr(noisy, clean, tuned) - true_psnr(noisy, clean, "default")
        for step, gain, seconds in checks.found:
            last = step == checks.found[-1][0]
            rows.append(
                {
                    "images": name,
                    "steps": step,
                    "estimated_gain": f"{gain:.2f}",
                    "true_gain": f"{gained:.2f}" if last else "",
                    "cpu_seconds": f"{seconds:.0f}",
                }
            )
            print(rows[-1], flush=True)
    write_csv(CSV, rows)
    heads = ["images", "steps", "estimated gain, dB", "true gain, dB", "CPU seconds"]
    fill(DOCS / "adapt.md", "time", markdown(heads, [list(row.values()) for row in read_csv(CSV)]))


if __name__ == "__main__":
    main()
