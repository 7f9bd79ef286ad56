"""What a dask cluster costs: speed-up, overhead, memory and a terabyte, for docs/scale.md.

    python benchmarks/scale.py speed terabyte
    python benchmarks/scale.py memory --gigabytes 1 4 16

All of it on workers of one thread on this machine. *speed* denoises 0.25 GB of noisy scenes with
the default model, plainly, on one worker and on two, round by round, and compares the fastest
runs by the time of processors, which other load on the machine does not disturb. *memory*
denoises stores of several sizes with a tiny network on two workers, and asks each for its peak.
*terabyte* measures what the scheduler does for a task, and multiplies.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import zarr
from distributed import Client
from pages import DATA, DOCS, fill, table
from scenes import microscopy_scenes

import normeq
from normeq._support.tables import write_csv
from normeq.cluster.connection import connected
from normeq.cluster.layout import cut
from normeq.cluster.runner import ClusterRunner
from normeq.cluster.steps import Step, run_steps
from normeq.denoising.file_options import FileOptions
from normeq.denoising.files import outcomes
from normeq.denoising.local_runner import Runner
from normeq.denoising.names import denoiser_for
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice

PAGE = DOCS / "scale.md"
SIDE = 1024
ITEM = np.dtype("float64").itemsize
# Blind, so that all runs do the same: no estimate, one network.
BLIND = NoiseOptions(noise="gaussian")


def write_store(path: Path, gigabytes: float) -> None:
    """Write a stack of noisy planes; each file is a link to one of three, to save the disk."""
    planes = max(1, round(gigabytes * 2**30 / (SIDE * SIDE * ITEM)))
    chunks = (1, SIDE // 2, SIDE // 2)
    array = zarr.create_array(path, shape=(planes, SIDE, SIDE), chunks=chunks, dtype="float64")
    rng = np.random.default_rng(0)
    scenes = [scene + rng.normal(0, 10, scene.shape) for scene in microscopy_scenes(3, SIDE)]
    for plane in range(min(planes, 3)):
        array[plane] = scenes[plane]
    for plane in range(3, planes):
        for chunk in sorted((path / "c" / str(plane % 3)).rglob("*")):
            if chunk.is_file():
                link = path / "c" / str(plane) / chunk.relative_to(path / "c" / str(plane % 3))
                link.parent.mkdir(parents=True, exist_ok=True)
                os.link(chunk, link)


class Taken(NamedTuple):
    """What a run took, in seconds: on the clock, and of processors, worker by worker."""

    clock: float
    command: float
    workers: list[float]

    @property
    def total(self) -> float:
        return self.command + sum(self.workers)

    @property
    def busiest(self) -> float:
        return max([self.command, *self.workers])


def measured(source: Path, model: str, client: Client | None) -> Taken:
    """Denoise a store and remove the result."""
    target = source.with_name("result.zarr")
    runner = Runner() if client is None else ClusterRunner(client)
    before = list(client.run(time.process_time).values()) if client else []
    start, used = time.perf_counter(), time.process_time()
    options = FileOptions(BLIND, runner=runner)
    [outcome] = outcomes([source], [target], Choice(model, "cpu"), options)
    clock, command = time.perf_counter() - start, time.process_time() - used
    if outcome.error:
        raise SystemExit(outcome.error)
    after = list(client.run(time.process_time).values()) if client else []
    shutil.rmtree(target)
    return Taken(clock, command, [b - a for a, b in zip(before, after, strict=True)])


def measure_speed(folder: Path, gigabytes: float, rounds: int) -> None:
    write_store(folder / "in.zarr", gigabytes)
    taken: dict[str, list[Taken]] = {"plain": [], "1 worker": [], "2 workers": []}
    for _ in range(rounds):
        taken["plain"].append(measured(folder / "in.zarr", "default", None))
        for count, name in ((1, "1 worker"), (2, "2 workers")):
            with connected(f"local:{count}") as client:
                client.run(warm_up)
                taken[name].append(measured(folder / "in.zarr", "default", client))
        print(taken, os.getloadavg(), flush=True)
    totals = {name: min(run.total for run in runs) for name, runs in taken.items()}
    busiest = {name: min(run.busiest for run in runs) for name, runs in taken.items()}
    clocks = {name: min(run.clock for run in runs) for name, runs in taken.items()}
    rows = [
        {
            "run": name,
            "GB": f"{gigabytes:g}",
            "CPU seconds": f"{totals[name]:.1f}",
            "of plain": f"{totals[name] / totals['plain']:.3f}",
            "CPU seconds of the busiest process": f"{busiest[name]:.1f}",
            "speed-up": f"{busiest['1 worker'] / busiest[name]:.2f}",
            "seconds": f"{clocks[name]:.0f}",
            "speed-up on the clock": f"{clocks['1 worker'] / clocks[name]:.2f}",
        }
        for name in taken
    ]
    write_csv(DATA / "scale-speed.csv", rows)
    fill(PAGE, "speed", table(DATA / "scale-speed.csv"))


def warm_up() -> None:
    """Let a worker import what it needs, as the plain run has."""
    torch.set_num_threads(1)
    denoiser_for("default", device="cpu").pixels_at_once()


def peak_megabytes() -> int:
    """Return the most memory that this process has ever had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measure_memory(folder: Path, sizes: list[float]) -> None:
    torch.manual_seed(0)
    net = normeq.create("fdncnn", "norm-equiv-residual", width=4, depth=2)
    normeq.save(net, folder / "tiny.safetensors", {})
    rows = []
    for gigabytes in sizes:
        write_store(folder / "in.zarr", gigabytes)
        with connected("local:2") as client:
            before = client.run(peak_megabytes)
            taken = measured(folder / "in.zarr", str(folder / "tiny.safetensors"), client)
            after = client.run(peak_megabytes)
        shutil.rmtree(folder / "in.zarr")
        rows.append(
            {
                "GB": f"{gigabytes:g}",
                "peak of each worker, MB": ", ".join(str(peak) for peak in after.values()),
                "before the run, MB": ", ".join(str(peak) for peak in before.values()),
                "seconds": f"{taken.clock:.0f}",
            }
        )
        print(rows[-1], flush=True)
        write_csv(DATA / "scale-memory.csv", rows)
    fill(PAGE, "memory", table(DATA / "scale-memory.csv"))


def estimate_terabyte(count: int = 2000) -> None:
    with connected("local:2") as client:
        nothing = Step(abs, (1,), lambda result: ())
        run_steps(client, iter([nothing] * 100))
        start = time.process_time()  # the scheduler of a local cluster is in this process
        run_steps(client, iter([nothing] * count))
        each = (time.process_time() - start) / count
    denoiser = denoiser_for("default", device="cpu")
    assert denoiser.halo is not None
    margin = denoiser.halo + denoiser.stride - 1
    rows = []
    for side, stored in ((2048, 512), (16384, 1024)):
        frames = round(1e12 / (2 * side * side))
        layout = cut((frames, side, side), (stored, stored))
        read = [
            (min(side, part.rows.stop + margin) - max(0, part.rows.start - margin))
            * (min(side, part.columns.stop + margin) - max(0, part.columns.start - margin))
            for part in layout.rectangles(range(1))
        ]
        halo = (sum(read) / side**2 - 1) * (not layout.undivided)
        rows.append(
            {
                "planes": f"{frames} of {side} x {side}",
                "tasks": str(layout.tasks),
                "scheduler, ms per task": f"{1000 * each:.2f}",
                "scheduler, minutes": f"{each * layout.tasks / 60:.1f}",
                "halos, GB": f"{1000 * halo:.0f}",
                "read for statistics, GB": "0" if layout.undivided else "1000",
            }
        )
    write_csv(DATA / "scale-terabyte.csv", rows)
    fill(PAGE, "terabyte", table(DATA / "scale-terabyte.csv"))
    print(table(DATA / "scale-terabyte.csv"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=["speed", "memory", "terabyte"])
    parser.add_argument("--gigabytes", type=float, nargs="+", default=None)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    normeq.keep_freed()  # as the command does
    with tempfile.TemporaryDirectory() as name:
        if "speed" in given.parts:
            measure_speed(Path(name), (given.gigabytes or [0.25])[0], given.rounds)
        if "memory" in given.parts:
            measure_memory(Path(name), given.gigabytes or [1, 4, 16])
        if "terabyte" in given.parts:
            estimate_terabyte()


if __name__ == "__main__":
    main()
