"""The picture of a certificate: a network's operations as boxes, coloured by kind."""

from __future__ import annotations

import math
from os import PathLike
from typing import TYPE_CHECKING

from normeq.certify.trace import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from normeq.certify.certificate import Certificate

COLOURS = {
    "E": "#b7e0b1",
    "H": "#b5d3f0",
    "I": "#f6e3a1",
    "mixed": "#cfe3df",
    "other": "#dddddd",
    "broken": "#f2b0a8",
}
MEANINGS = {
    "E": "E: follows gain and offset",
    "H": "H: follows the gain only",
    "I": "I: follows neither",
    "mixed": "several of these, by channel",
    "other": "another degree or coefficient",
    "broken": "no law: something before it broke it",
}
_ROWS = 30
_WIDTH = 4.6  # of a column, in units of a row's height


class Box:
    """Consecutive operations of one module."""

    def __init__(self, first: Record) -> None:
        self.records = [first]

    @property
    def kind(self) -> str:
        """The kind of what comes out."""
        return self.records[-1].kind

    @property
    def breaks(self) -> bool:
        """Whether one of the operations breaks something."""
        return any(record.breaks for record in self.records)

    @property
    def label(self) -> str:
        """The module and its operations."""
        names = list(dict.fromkeys(record.operation for record in self.records))
        listed = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
        path = self.records[0].path
        return f"{_shortened(path)}: {listed}" if path else listed

    @property
    def colour(self) -> str:
        """The fill colour."""
        if self.kind.startswith("no "):
            return COLOURS["broken"]
        return COLOURS.get(self.kind, COLOURS["mixed" if "+" in self.kind else "other"])


def boxes(records: tuple[Record, ...]) -> list[Box]:
    """Join operations that follow each other in one module."""
    joined: list[Box] = []
    for record in records:
        last = joined[-1] if joined else None
        follows = last is not None and set(record.inputs) <= {r.name for r in last.records}
        if last is not None and record.path and record.path == last.records[0].path and follows:
            last.records.append(record)
        else:
            joined.append(Box(record))
    return joined


def draw(certificate: Certificate, path: str | PathLike[str]) -> None:
    """Draw a certificate's operations from top to bottom, column after column."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = boxes(certificate.records)
    columns = max(1, math.ceil(len(drawn) / _ROWS))
    rows = math.ceil(len(drawn) / columns)
    figure = Figure(figsize=(3.9 * columns + 0.6, 0.36 * rows + 1.9), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    axes.set_axis_off()
    places = {
        index: (_WIDTH * (index // rows), -1.0 * (index % rows)) for index in range(len(drawn))
    }
    _draw_links(axes, drawn, places)
    for index, box in enumerate(drawn):
        _draw_box(axes, box, *places[index])
    _draw_legend(axes, certificate, columns)
    axes.set_xlim(-2.1, _WIDTH * (columns - 1) + 2.6)
    axes.set_ylim(-rows + 0.3, 3.9)
    figure.savefig(path)


def _draw_box(axes: Axes, box: Box, x: float, y: float) -> None:
    edge, line = ("#b3261e", 1.8) if box.breaks else ("#666666", 0.7)
    frame = {"boxstyle": "round,pad=0.25", "fc": box.colour, "ec": edge, "lw": line}
    axes.text(x, y, box.label, fontsize=7.5, ha="center", va="center", bbox=frame, zorder=3)


def _draw_links(axes: Axes, drawn: list[Box], places: dict[int, tuple[float, float]]) -> None:
    """Draw an arrow for each dependence: straight to the next box, in an arc past others."""
    home = {record.name: index for index, box in enumerate(drawn) for record in box.records}
    for index, box in enumerate(drawn):
        sources = {home[name] for r in box.records for name in r.inputs if name in home}
        for source in sorted(sources - {index}):
            (x0, y0), (x1, y1) = places[source], places[index]
            straight = source == index - 1 and x0 == x1
            if x0 == x1:
                bend = 0.0 if straight else -min(0.5, 0.16 + 1.2 / (1 + abs(y1 - y0)))
            else:
                bend = 0.08
            side = 0.0 if straight or x0 != x1 else 1.1
            arrow = {
                "arrowstyle": "-|>",
                "color": "#444444" if straight else "#8a8aa8",
                "lw": 0.9,
                "shrinkA": 7,
                "shrinkB": 7,
                "connectionstyle": f"arc3,rad={bend}",
            }
            axes.annotate("", (x1 + side, y1), (x0 + side, y0), arrowprops=arrow, zorder=1)


def _draw_legend(axes: Axes, certificate: Certificate, columns: int) -> None:
    verdicts = "   ".join(f"{n}: {getattr(certificate, n)}" for n in ("scale", "shift", "norm"))
    axes.text(-2.0, 3.5, verdicts, fontsize=9.5, weight="bold", va="center")
    per_row = 1 if columns == 1 else 3 if columns > 2 else 2
    for index, (name, meaning) in enumerate(MEANINGS.items()):
        x = -1.85 + 3.3 * (index % per_row)
        y = 2.9 - (0.42 if per_row == 1 else 0.55) * (index // per_row)
        patch = {"boxstyle": "square,pad=0.2", "fc": COLOURS[name], "ec": "#666666", "lw": 0.5}
        axes.text(x, y, "  ", fontsize=5.5, va="center", bbox=patch)
        axes.text(x + 0.25, y, meaning, fontsize=7, va="center")


def _shortened(path: str) -> str:
    """Keep a long path's end."""
    return path if len(path) <= 24 else "..." + path[-22:]
