"""Where the time of a training step goes, scale-equiv beside norm-equiv: docs/training-profile.csv.

    python benchmarks/training_profile.py unet fdncnn

Milliseconds of a fused step on 16x1x128x128 in the default memory layout, by kind of operation;
means of interleaved rounds under torch's profiler, which adds a little to everything.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import torch
from pages import DOCS
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

import normeq
from normeq.bench import NETWORKS
from normeq.memory import keep_freed
from normeq.results import write_csv

OUT = DOCS / "training-profile.csv"
VARIANTS = ("scale-equiv", "norm-equiv")
KINDS: dict[str, Callable[[str], bool]] = {
    "convolutions, forward": lambda name: name == "aten::mkldnn_convolution",
    "convolutions, backward": lambda name: name == "aten::convolution_backward",
    "padding": lambda name: "pad" in name.lower(),
    "copies": lambda name: name == "aten::copy_",
    "sums and products": lambda name: name.startswith(("aten::add", "aten::mul", "aten::dot")),
    "activation": lambda name: name.startswith(
        ("aten::threshold", "aten::clamp", "aten::relu", "aten::abs", "aten::sgn")
    ),
    "everything else": lambda name: True,
}


def milliseconds(net: nn.Module, x: Tensor) -> Counter[str]:
    """Profile one step; return the time of each kind of operation."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        net.zero_grad(set_to_none=True)
        F.mse_loss(net(x), x).backward()
    taken: Counter[str] = Counter()
    for event in profiler.key_averages():
        kind = next(kind for kind, belongs in KINDS.items() if belongs(event.key))
        taken[kind] += event.self_cpu_time_total / 1000
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="+", choices=NETWORKS)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    keep_freed()
    x = torch.rand(16, 1, 128, 128)
    rows = []
    for name in given.networks:
        nets = {v: normeq.nn.fuse(normeq.create(name, v).train()) for v in VARIANTS}
        totals: dict[str, Counter[str]] = {v: Counter() for v in VARIANTS}
        for round_ in range(-1, given.rounds):
            for variant, net in nets.items():
                taken = milliseconds(net, x)
                if round_ >= 0:  # the first one warms up
                    totals[variant] += taken
        for kind in (*KINDS, "all"):
            means = {
                variant: (taken.total() if kind == "all" else taken[kind]) / given.rounds
                for variant, taken in totals.items()
            }
            rows.append(
                {"network": name, "operations": kind}
                | {variant: f"{mean:.1f}" for variant, mean in means.items()}
            )
            print(rows[-1], flush=True)
    write_csv(OUT, rows)


if __name__ == "__main__":
    main()
