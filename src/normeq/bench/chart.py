"""The bar chart of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from normeq.bench.variant_times import Timing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What the paper measured for its DRUNet on a CPU: norm-equiv over scale-equiv.
PAPER = {"inference": 1.17, "training": 1.21}
_SHOWN = [
    "ordinary",
    "norm-equiv-wrapped",
    "norm-equiv-residual",
    "norm-equiv",
    "affine only",
    "sort only",
]


def draw(timings: Sequence[Timing]) -> Figure:
    """Draw the ratios to scale-equiv: one panel per job, one group of bars per network."""
    from matplotlib.figure import Figure

    networks = list(dict.fromkeys(timing.network for timing in timings))
    figure = Figure(figsize=(10, 1.2 + 1.1 * len(networks)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    height = 0.8 / (len(_SHOWN) + 1)
    for panel, (job, of_paper) in zip(panels, PAPER.items(), strict=True):
        rows = [timing for timing in timings if timing.job == job]
        bars = [(variant, "fast") for variant in _SHOWN] + [("norm-equiv", "as built")]
        for index, (variant, path_taken) in enumerate(bars):
            found = _best(r for r in rows if (r.variant, r.path) == (variant, path_taken))
            positions = [networks.index(name) + (index - 3) * height for name in found]
            label = variant if path_taken == "fast" else f"{variant}, as built"
            drawn = panel.barh(positions, list(found.values()), height, label=label)
            panel.bar_label(drawn, fmt="%.2f", label_type="center", color="white", fontsize=7)
        panel.axvline(1, color="black", linewidth=0.8)
        panel.axvline(
            of_paper, color="black", linewidth=0.8, linestyle=":", label="norm-equiv DRUNet, paper"
        )
        panel.set_title(f"{job}: time over that of scale-equiv")
        panel.set_yticks(range(len(networks)), networks)
        panel.set_xlim(0, 1.1 * panel.get_xlim()[1])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _best(timings: Iterable[Timing]) -> dict[str, float]:
    """Return the ratio of each network in its fastest layout."""
    best: dict[str, float] = {}
    for timing in timings:
        best[timing.network] = min(timing.ratio, best.get(timing.network, math.inf))
    return best
