"""The paper's table of execution times: affine kernels, sort pooling, both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normeq.bench import Timing, measure
from normeq.bench.variant_times import Job
from normeq.reproduce.scale import Scale
from normeq.reproduce.verdicts import Claim, is_below
from normeq.reproduce.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's CPU seconds for a batch of 16x1x128x128, by variant: training, inference.
PAPER_CPU = {"ordinary": (38.4, 12.5), "scale-equiv": (37.4, 12.2), "norm-equiv": (45.3, 14.3)}
#: Its GPU seconds, for the whole grid.
PAPER_GPU = {
    "scale-equiv": (0.229, 0.067),
    "sort only": (0.268, 0.102),
    "affine only": (0.344, 0.083),
    "norm-equiv": (0.386, 0.122),
}
#: How the paper's grid is laid out: affine, sort pooling.
GRID = {
    "ordinary": "with biases",
    "scale-equiv": "neither",
    "sort only": "sort pooling",
    "affine only": "affine",
    "norm-equiv": "affine and sort pooling",
}
_JOBS: tuple[Job, ...] = ("training", "inference")
_LARGEST = 1.2
_SIZES: dict[Scale, dict[str, Any]] = {
    Scale.TINY: {"batch": 1, "size": 16, "rounds": 1, "widths": (4, 6), "blocks": 1},
    Scale.SMALL: {"batch": 2, "size": 128, "rounds": 5},
    Scale.PAPER: {"batch": 16, "size": 128, "rounds": 5},
}


def reproduce(workspace: Workspace) -> None:
    """Time the paper's grid for DRUNet on this machine, as `normeq bench` does."""
    timings: dict[tuple[str, str], Timing] = {}
    for job in _JOBS:
        for timing in measure("drunet", job, progress=workspace.say, **_SIZES[workspace.scale]):
            kept = timings.get((timing.variant, job))
            if timing.path == "fast" and (kept is None or timing.ratio < kept.ratio):
                timings[timing.variant, job] = timing
    rows = [_row(variant, layout, timings) for variant, layout in GRID.items()]
    workspace.table("time-table", rows)
    workspace.figure("time-table", lambda: _draw(timings))
    workspace.judge("time-table", [_claim(timings["norm-equiv", job], job) for job in _JOBS])


def _row(variant: str, layout: str, timings: dict[tuple[str, str], Timing]) -> dict[str, str]:
    row = {"variant": variant, "layers": layout}
    for index, job in enumerate(_JOBS):
        timing = timings[variant, job]
        row[f"{job} s"] = f"{timing.seconds:.3g}"
        row[f"{job} ratio"] = f"{timing.ratio:.2f}"
        row[f"{job} spread"] = f"{timing.spread:.2f}"
        row[f"paper {job} ratio, CPU"] = _ratio(PAPER_CPU, variant, index)
        row[f"paper {job} ratio, GPU"] = _ratio(PAPER_GPU, variant, index)
    return row


def _ratio(paper: dict[str, tuple[float, float]], variant: str, index: int) -> str:
    if variant not in paper:
        return ""
    return f"{paper[variant][index] / paper['scale-equiv'][index]:.2f}"


def _claim(timing: Timing, job: Job) -> Claim:
    index = _JOBS.index(job)
    paper = PAPER_CPU["norm-equiv"][index] / PAPER_CPU["scale-equiv"][index]
    return Claim(
        f"{job.capitalize()} of norm-equiv takes about 20 % longer on a CPU",
        f"{paper:.2f} times scale-equiv",
        f"{timing.ratio:.2f} times, spread {timing.spread:.2f}",
        is_below(timing.ratio, _LARGEST, timing.spread),
        f"holds: below {_LARGEST:g}; batch {timing.batch}, {timing.size} pixels a side, threads: "
        f"{timing.threads}; median of interleaved rounds",
    )


def _draw(timings: dict[tuple[str, str], Timing]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, job in zip(figure.subplots(1, 2, sharey=True), _JOBS, strict=True):
        index = _JOBS.index(job)
        for place, variant in enumerate(GRID):
            timing = timings[variant, job]
            axes.barh(place - 0.2, timing.ratio, 0.4, xerr=timing.spread, color="tab:blue")
            paper = PAPER_CPU.get(variant) or PAPER_GPU[variant]
            base = (PAPER_CPU if variant in PAPER_CPU else PAPER_GPU)["scale-equiv"]
            axes.barh(place + 0.2, paper[index] / base[index], 0.4, color="0.7")
        axes.set(title=job, xlabel="time over that of scale-equiv")
        axes.set_yticks(range(len(GRID)), list(GRID))
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    figure.suptitle("blue: here; gray: the paper (CPU; the rows with one change: GPU)", fontsize=9)
    return figure
