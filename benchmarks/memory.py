"""How much memory a run of ``normeq denoise`` takes at its peak, for images of several shapes.

    python benchmarks/memory.py

writes images of noise, denoises each in a process of its own with the default model, and puts the
peak of its resident memory into docs/data/memory.csv and docs/reliability.md. What is loaded
before the first pixel (Python, torch, the network) counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from pages import DATA, DOCS, fill, table

from normeq._support.tables import write_csv

CSV, PAGE = DATA / "memory.csv", DOCS / "reliability.md"
SHAPES = [(16, 16), (1, 1_000_000), (1_000_000, 1), (1000, 1000), (16, 256, 256)]


def peak(shape: tuple[int, ...]) -> int:
    """Return the peak of resident memory in MiB."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "in.tif")
        image = np.random.default_rng(0).integers(90, 200, shape).astype(np.uint16)
        tifffile.imwrite(path, image, photometric="minisblack")
        run = subprocess.Popen([sys.executable, "-m", "normeq", "denoise", "--quiet", str(path)])
        _, status, used = os.wait4(run.pid, 0)
        if status:
            raise SystemExit(f"{shape}: failed with status {status}")
    return round(used.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, default=CSV)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        rows.append({"shape": " x ".join(map(str, shape)), "peak in MiB": peak(shape)})
        print(rows[-1], flush=True)
    write_csv(options.csv, rows)
    if options.csv == CSV:
        fill(PAGE, "memory", table(CSV))


if __name__ == "__main__":
    main()
