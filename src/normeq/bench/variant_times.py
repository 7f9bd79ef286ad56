"""What equivariance costs: the time of every variant as a ratio to the scale-equivariant one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.bench.arithmetic import bare_convolutions, multiply_adds
from normeq.models import create, names, variants
from normeq.nn import SortPool, fold, fuse

Job = Literal["inference", "training"]
Layout = Literal["contiguous", "channels_last"]
NETWORKS = [name for name in names() if name != "vgg8b"]
_LAYOUTS: dict[Layout, torch.memory_format] = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
}
_BASELINE = "scale-equiv"


@dataclass(frozen=True)
class Case:
    """One way to run one network.

    Attributes
    ----------
    network
        Its name in the registry.
    variant
        One of the registry, or of the paper's grid: "affine only" (constrained kernels, copy
        padding and affine residuals, with ReLU), "sort only" (sort pooling in the scale-equiv
        network).
    job
        Forward pass without gradients, or forward and backward.
    path
        "as built": the network of `create`; "fast": folded for inference, fused for training;
        "compiled": that, through `torch.compile`.
    layout
        Memory layout of the kernels, which that of the features follows.
    """

    network: str
    variant: str
    job: Job
    path: Literal["as built", "fast", "compiled"] = "fast"
    layout: Layout = "contiguous"


@dataclass(frozen=True)
class Timing:
    """A case with its median time.

    Attributes
    ----------
    ratio
        Time over that of the scale-equiv network on its fast path in its fastest layout, compiled
        where the case is compiled: the median of the ratios of all rounds, which what slows a
        whole round does not change.
    spread
        Half the distance between the quartiles of those ratios.
    macs_per_pixel
        Multiply-adds of the forward pass for each pixel of the image.
    peak_share
        Arithmetic rate over the best one of a bare convolution, measured in the same run.
    """

    network: str
    variant: str
    job: Job
    path: str
    layout: str
    seconds: float
    ratio: float
    spread: float
    macs_per_pixel: int
    peak_share: float
    batch: int
    size: int
    threads: int


def cases(network: str, job: Job, compiled: bool = False) -> list[Case]:
    """List what is measured for a network: baseline and equivariant ones in both layouts."""
    equivariant = [v for v in variants(network) if v not in ("ordinary", _BASELINE)]
    usual: Layout = "channels_last" if job == "inference" else "contiguous"
    listed = [
        Case(network, variant, job, layout=layout)
        for variant in (_BASELINE, *equivariant)
        for layout in _LAYOUTS
    ]
    listed += [
        Case(network, variant, job, layout=usual)
        for variant in ("ordinary", "affine only", "sort only")
    ]
    listed.append(Case(network, "norm-equiv", job, "as built", "contiguous"))
    if compiled and job == "inference":
        listed += [
            Case(network, variant, job, "compiled", layout)
            for variant in (_BASELINE, "norm-equiv")
            for layout in _LAYOUTS
        ]
    return listed


def measure(
    network: str,
    job: Job,
    *,
    batch: int = 16,
    size: int = 128,
    rounds: int = 5,
    seconds: float = 0,
    compiled: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> list[Timing]:
    """Time all variants of a network in interleaved rounds.

    Parameters
    ----------
    network, job, compiled
        See `Case`.
    batch, size
        Number of gray images in the input, and pixels a side.
    rounds
        Each case runs once per round, after a warm-up.
    seconds
        Rounds go on until this many have passed: small networks get more of them.
    progress
        Told what is running.
    **options
        Sizes of the network, as in `create`.

    Examples
    --------
    >>> for timing in measure("fdncnn", "inference", batch=1, size=16, rounds=1, width=4, depth=3):
    ...     assert timing.seconds > 0
    """
    torch.compiler.reset()  # compiled networks of earlier calls count towards torch's limit
    x = torch.rand(batch, 1, size, size)
    listed = cases(network, job, compiled)
    networks = [build(case, options) for case in listed]
    runs = [runner(net, x, job) for net in networks]
    bare = bare_convolutions()
    times = _interleaved(
        [*runs, *(run for run, _ in bare)],
        rounds,
        seconds,
        lambda text: progress(f"{network} {job}, {text}"),
    )
    times, bare_times = times[: len(runs)], times[len(runs) :]
    peak = max(
        operations / min(taken) for (_, operations), taken in zip(bare, bare_times, strict=True)
    )
    macs = multiply_adds(create(network, "scale-equiv", **options))
    passes = 1 if job == "inference" else 3  # gradients of kernels and of features cost one each
    timings = []
    for case, taken in zip(listed, times, strict=True):
        seconds_taken = statistics.median(taken)
        ratio, spread = _ratio(taken, _baseline(case, listed, times))
        timings.append(
            Timing(
                **vars(case),
                seconds=seconds_taken,
                ratio=ratio,
                spread=spread,
                macs_per_pixel=macs,
                peak_share=2 * passes * macs * x.numel() / seconds_taken / peak,
                batch=batch,
                size=size,
                threads=torch.get_num_threads(),
            )
        )
    return timings


def _interleaved(
    runs: Sequence[Callable[[], None]],
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
) -> list[list[float]]:
    """Return the times of each run, one per round."""
    progress("warm-up")
    for run in runs:
        run()
    times: list[list[float]] = [[] for _ in runs]
    start = time.monotonic()
    done = 0
    while done < rounds or time.monotonic() - start < seconds:
        done += 1
        progress(f"round {done}")
        for run, taken in zip(runs, times, strict=True):
            taken.append(_seconds(run))
    return times


def _baseline(case: Case, listed: Sequence[Case], times: Sequence[list[float]]) -> list[float]:
    """Return the times of the scale-equiv network at its fastest."""
    compiled = case.path == "compiled"
    return min(
        (
            taken
            for other, taken in zip(listed, times, strict=True)
            if other.variant == _BASELINE and (other.path == "compiled") == compiled
        ),
        key=statistics.median,
    )


def _ratio(taken: list[float], baseline: list[float]) -> tuple[float, float]:
    """Return the median over rounds of one time over another, and half its quartile distance."""
    ratios = [seconds / other for seconds, other in zip(taken, baseline, strict=True)]
    if len(ratios) == 1:
        return ratios[0], 0.0
    lower, middle, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    return middle, (upper - lower) / 2


def build(case: Case, options: dict[str, Any]) -> nn.Module:
    """Return the network of a case, ready to run."""
    net: nn.Module
    if case.variant == "affine only":
        net = _swap(create(case.network, "norm-equiv", **options), SortPool, nn.ReLU)
    elif case.variant == "sort only":
        net = _swap(create(case.network, "scale-equiv", **options), nn.ReLU, SortPool)
    else:
        variant: Any = case.variant
        net = create(case.network, variant, **options)
    net.train(case.job == "training")
    if case.path != "as built":
        net = fold(net) if case.job == "inference" else fuse(net)
    net = net.to(memory_format=_LAYOUTS[case.layout])  # type: ignore[call-overload]
    return torch.compile(net) if case.path == "compiled" else net  # type: ignore[return-value]


def _swap(net: nn.Module, old: type[nn.Module], new: Callable[[], nn.Module]) -> nn.Module:
    """Replace the layers of one kind by new ones."""
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, old):
                setattr(module, name, new())
    return net


def runner(net: nn.Module, x: Tensor, job: Job) -> Callable[[], None]:
    """Return a function that does a job once."""

    def infer() -> None:
        with torch.inference_mode():
            net(x)

    def step() -> None:
        net.zero_grad(set_to_none=True)
        F.mse_loss(net(x), x).backward()

    return infer if job == "inference" else step


def _seconds(run: Callable[[], Any]) -> float:
    # On one thread the time of the processor is the same, and other processes disturb it less.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    run()
    return clock() - start
