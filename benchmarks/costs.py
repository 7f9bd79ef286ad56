"""What equivariance costs, operation by operation: costs.csv and its table in docs/speed.md.

    python benchmarks/costs.py unet fdncnn drunet

Milliseconds on 16x1x128x128, folded for inference in channels_last, fused for training in the
default layout, by kind of operation. Every operation counts with its fastest time in any round:
what disturbs the machine for a second or two then disturbs no figure, which medians of whole runs
do not achieve on a shared machine. Networks that are not named keep their rows.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable

import torch
from pages import DATA, DOCS, fill, table
from torch.profiler import ProfilerActivity, profile

from normeq._support.allocator import keep_freed
from normeq._support.tables import read_csv, write_csv
from normeq.bench import NETWORKS, Case
from normeq.bench.variant_times import Job, build, runner

OUT = DATA / "costs.csv"
VARIANTS = ("scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped")
KINDS: dict[str, Callable[[str], bool]] = {
    "convolutions": lambda name: "convolution" in name.lower(),
    "padding and copies": lambda name: "pad" in name.lower() or name == "aten::copy_",
    "sums and products": lambda name: name.startswith(("aten::add", "aten::mul", "aten::dot")),
    "activations": lambda name: name.startswith(
        ("aten::threshold", "aten::clamp", "aten::relu", "aten::abs", "aten::sgn")
    ),
    "everything else": lambda name: True,
}
Operation = tuple[str, float]


def operations(run: Callable[[], None]) -> list[Operation]:
    """Run a network once; return its operations in their order, each with its own milliseconds."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        run()
    events = sorted(profiler.events(), key=lambda event: event.time_range.start)
    return [(event.name, event.self_cpu_time_total / 1000) for event in events]


def fastest(first: list[Operation], second: list[Operation]) -> list[Operation]:
    """Return the lower time of each operation in two runs of one network."""
    assert [name for name, _ in first] == [name for name, _ in second]
    pairs = zip(first, second, strict=True)
    return [(name, min(taken, other)) for (name, taken), (_, other) in pairs]


def interleaved(runs: dict[str, Callable[[], None]], seconds: float) -> dict[str, list[Operation]]:
    """Return the operations of each run, every one with its fastest time in any round."""
    for run in runs.values():
        run()  # the first run warms up
    best = {name: operations(run) for name, run in runs.items()}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, run in runs.items():
            best[name] = fastest(best[name], operations(run))
    return best


def by_kind(taken: list[Operation]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for name, milliseconds in taken:
        totals[next(kind for kind, belongs in KINDS.items() if belongs(name))] += milliseconds
    return totals


def measure(network: str, job: Job, seconds: float) -> list[dict[str, str]]:
    """Return a row for each kind of operation, one for their sum, and one for its ratio."""
    x = torch.rand(16, 1, 128, 128)
    layout = "channels_last" if job == "inference" else "contiguous"
    cases = {variant: Case(network, variant, job, layout=layout) for variant in VARIANTS}
    runs = {variant: runner(build(case, {}), x, job) for variant, case in cases.items()}
    totals = {name: by_kind(taken) for name, taken in interleaved(runs, seconds).items()}

    def row(name: str, cells: dict[str, str]) -> dict[str, str]:
        return {"network": network, "job": job, "operations": name, **cells}

    sums = {variant: taken.total() for variant, taken in totals.items()}
    return [
        *(row(kind, {v: f"{totals[v][kind]:.1f}" for v in VARIANTS}) for kind in KINDS),
        row("all", {v: f"{sums[v]:.1f}" for v in VARIANTS}),
        row("ratio", {v: f"{sums[v] / sums[VARIANTS[0]]:.3f}" for v in VARIANTS}),
    ]


def arguments(description: str | None, seconds: float, each: str) -> argparse.Namespace:
    """Read which networks are to be measured, and for how long."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="+", choices=NETWORKS)
    parser.add_argument("--seconds", type=float, default=seconds, help=f"for each {each}")
    return parser.parse_args()


def main() -> None:
    given = arguments(__doc__, 240, "network and job")
    keep_freed()
    for network in given.networks:
        for job in ("inference", "training"):
            print(f"{network}, {job}", flush=True)
            measured = measure(network, job, given.seconds)
            kept = [row for row in read_csv(OUT) if (row["network"], row["job"]) != (network, job)]
            rows = sorted([*kept, *measured], key=lambda row: (row["network"], row["job"]))
            write_csv(OUT, rows)
    fill(DOCS / "speed.md", "costs", table(OUT))


if __name__ == "__main__":
    main()
