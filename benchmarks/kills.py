"""Runs that are killed at random moments, and what they leave.

    python benchmarks/kills.py --kills 40

kills ``normeq denoise`` with SIGKILL while it writes a TIFF, an NPY file or a Zarr, each time at a
random moment, looks at what is under the final name, and gives the command again until it ends.
The counts go to docs/data/kills.csv and docs/reliability.md:

- kills: how many runs were killed
- partial: how often the final name held something that is not the whole result
- resumed: runs that went on with what a killed one had left
- wrong: finished results whose pixels are not those of an undisturbed run
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import zarr
from pages import DATA, DOCS, fill, table

from normeq import images
from normeq._support.tables import write_csv

CSV, PAGE = DATA / "kills.csv", DOCS / "reliability.md"
STACK = np.random.default_rng(0).integers(0, 4000, (40, 64, 64)).astype(np.uint16)
MODEL = """
import time

def make():
    def slow(plane):
        time.sleep(0.05)
        return plane / 2
    return slow
"""


def write_input(path: Path) -> None:
    if path.suffix == ".zarr":
        zarr.create_array(path, data=STACK, chunks=(1, 64, 64))
    elif path.suffix == ".npy":
        np.save(path, STACK)
    else:
        tifffile.imwrite(path, STACK, photometric="minisblack")


def command(path: Path, target: Path) -> list[str]:
    denoise = [sys.executable, "-m", "normeq", "denoise", "--model", "slow:make", "--json"]
    return [*denoise, str(path), "-o", str(target)]


def is_whole(target: Path) -> bool:
    return bool(np.array_equal(images.read(target), np.rint(STACK / 2)))


def measure(extension: str, kills: int, seed: int) -> dict[str, Any]:
    """Kill runs until there were enough, finishing one whenever it comes to its end."""
    rng = random.Random(seed)
    counts = {"file": extension, "kills": 0, "partial": 0, "resumed": 0, "wrong": 0}
    while counts["kills"] < kills:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "slow.py").write_text(MODEL)
            path, target = folder / f"in{extension}", folder / f"out{extension}"
            write_input(path)
            for _ in range(3):
                if counts["kills"] < kills and not target.exists():
                    counts["kills"] += killed(command(path, target), folder, rng)
                    counts["partial"] += target.exists() and not is_whole(target)
            if not target.exists():
                counts["resumed"] += finished(command(path, target), folder)
            counts["wrong"] += not is_whole(target)
    return counts


def killed(arguments: Sequence[str], folder: Path, rng: random.Random) -> bool:
    """Start a run and kill it once it writes; return whether it was still running."""
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob(".out*")):
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 2))
    process.send_signal(signal.SIGKILL)
    return process.wait() != 0


def finished(arguments: Sequence[str], folder: Path) -> bool:
    """Let a run end; return whether it resumed."""
    run = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=True)
    return bool(json.loads(run.stdout)["files"][0]["resumed"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, default=CSV)
    options = parser.parse_args()
    extensions = (".tif", ".npy", ".zarr")
    each = -(-options.kills // len(extensions))
    rows = [measure(extension, each, options.seed) for extension in extensions]
    write_csv(options.csv, rows)
    if options.csv == CSV:
        fill(PAGE, "kills", table(CSV))
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
