"""What the figures of several experiments have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: One colour for each variant, in all figures.
COLORS = {
    "ordinary": "tab:brown",
    "scale-equiv": "tab:blue",
    "norm-equiv": "tab:red",
    "norm-equiv-residual": "tab:green",
    "norm-equiv-wrapped": "tab:orange",
    "norm-equiv-telescoped": "tab:pink",
    "noisy": "0.6",
}


def draw_lines(
    axes: Axes,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    xlabel: str,
    ylabel: str = "PSNR (dB)",
    style: str = ".-",
) -> None:
    """Draw a line through the points of each variant, in the colour of the name it begins with."""
    for label, points in lines.items():
        if points:
            color = COLORS.get(label.split(",")[0])
            given = "--" if label == "noisy" else style
            axes.plot(*zip(*points, strict=True), given, label=label, color=color)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
