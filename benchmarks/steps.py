"""What each step on the way to a fast norm-equiv network gives: docs/data/steps.csv, a table.

    python benchmarks/steps.py unet fdncnn drunet

Inference on 16x1x128x128, each step on top of those before it; milliseconds by the rule of
costs.py. The last line is the scale-equivariant network on its fast path.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from unittest import mock

import torch
from costs import arguments, interleaved
from pages import DATA, DOCS, fill, table
from torch import nn

import normeq
from normeq._support.allocator import keep_freed
from normeq._support.tables import write_csv
from normeq.bench.variant_times import runner
from normeq.nn.copies import bake_weights
from normeq.nn.fast import borders

OUT = DATA / "steps.csv"


def baked(net: nn.Module) -> nn.Module:
    """Return a copy whose kernels are computed once for all."""
    net = copy.deepcopy(net)
    bake_weights(net)
    return net


def runs(network: str) -> dict[str, Callable[[], None]]:
    """Return what is timed, by step."""
    x = torch.rand(16, 1, 128, 128)
    net = normeq.create(network, "norm-equiv").eval()
    once = baked(net)
    nets = {
        "freed memory kept": net,
        "kernels computed once": once,
        "channels last": copy.deepcopy(once).to(memory_format=torch.channels_last),  # type: ignore[call-overload]
        "sorting and residuals absorbed by kernels": normeq.fold(net),
        "borders kept": normeq.fold(net),
        "scale-equiv": normeq.fold(normeq.create(network, "scale-equiv").eval()),
    }
    timed = {step: runner(each, x, "inference") for step, each in nets.items()}
    absorbed = timed["sorting and residuals absorbed by kernels"]

    def without_borders() -> None:
        with mock.patch.object(borders, "_SIDE_PER_CHANNEL", math.inf):
            absorbed()

    return timed | {"sorting and residuals absorbed by kernels": without_borders}


def milliseconds(timed: dict[str, Callable[[], None]], seconds: float) -> dict[str, float]:
    best = interleaved(timed, seconds)
    return {step: sum(taken for _, taken in best[step]) for step in timed}


def main() -> None:
    given = arguments(__doc__, 60, "network")
    timed = {network: runs(network) for network in given.networks}
    freed = {
        network: milliseconds({"as built": steps["freed memory kept"]}, given.seconds / 6)
        for network, steps in timed.items()
    }
    keep_freed()
    measured = {
        network: freed[network] | milliseconds(steps, given.seconds)
        for network, steps in timed.items()
    }
    rows = [
        {"step": step, **{network: f"{measured[network][step]:.1f}" for network in measured}}
        for step in measured[given.networks[0]]
    ]
    write_csv(OUT, rows)
    fill(DOCS / "speed.md", "steps", table(OUT))


if __name__ == "__main__":
    main()
