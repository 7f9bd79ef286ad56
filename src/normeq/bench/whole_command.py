"""Where the time of ``normeq denoise`` goes, from file to file."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from normeq import denoise, images


@dataclass(frozen=True)
class CommandPart:
    """One part of the work, with its median time for each megapixel."""

    part: str
    seconds_per_megapixel: float


def denoise_parts(model: str, size: int = 1024, rounds: int = 3) -> list[CommandPart]:
    """Time the command on a 16-bit TIFF, whole and in parts.

    Parameters
    ----------
    model
        As in `normeq.denoise`.
    size
        Height and width of the image.
    rounds
        Each part runs once per round.
    """
    image = np.random.default_rng(0).normal(1000, 50, (size, size)).astype(np.uint16)
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "noisy.tif"), Path(folder, "clean.tif")
        images.write(source, image)
        command = [sys.executable, "-m", "normeq", "denoise", str(source), "-o", str(target)]
        command += ["--model", model, "--overwrite"]
        jobs: dict[str, Callable[[], Any]] = {
            "decode": lambda: images.read(source),
            "network": lambda: denoise(image, model=model),
            "encode": lambda: images.write(target, image),
            "command": lambda: subprocess.run(command, check=True, capture_output=True),
        }
        times: dict[str, list[float]] = {part: [] for part in jobs}
        for _ in range(rounds):
            for part, job in jobs.items():
                start = time.perf_counter()
                job()
                times[part].append(time.perf_counter() - start)
    megapixels = size**2 / 1e6
    medians = {part: statistics.median(taken) / megapixels for part, taken in times.items()}
    start_up = medians["command"] - sum(medians[part] for part in ("decode", "network", "encode"))
    return [
        CommandPart(part, seconds) for part, seconds in (medians | {"start-up": start_up}).items()
    ]
