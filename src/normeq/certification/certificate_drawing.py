"""The picture of a certificate: a network's operations as boxes, coloured by kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

from normeq.certification.findings import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from normeq.certification.certificate import Certificate

COLOURS = {
    "E": ("#b7e0b1", "E: follows gain and offset"),
    "H": ("#b5d3f0", "H: follows the gain only"),
    "I": ("#f6e3a1", "I: follows neither"),
    "mixed": ("#cde5e4", "E, H, I by channel"),
    "other": ("#dddddd", "another degree or coefficient"),
    "broken": ("#f6c9c3", "follows no law any more"),
    "culprit": ("#f6c9c3", "breaks it"),
}
_ROWS = 30  # at most, in a column
_BOX = 3.4  # width of a box; a row has height 1
_COLUMN = 5.2
_CULPRIT_EDGE = "#b3261e"

#: Operations that change nothing at all.
_SILENT = {"alias", "clone", "contiguous", "detach"}


@dataclass(frozen=True)
class GraphBox:
    """Consecutive operations of one module."""

    records: tuple[Record, ...]
    breaks: bool

    @property
    def label(self) -> str:
        """The module and its operations."""
        names = list(dict.fromkeys(record.operation for record in self.records))
        listed = ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")
        path = self.records[0].path
        return _shortened(f"{path}: {listed}" if path else listed)

    @property
    def colour(self) -> str:
        """The fill colour, by the kind of what comes out."""
        kind = self.records[-1].kind
        if kind.startswith("no "):
            return COLOURS["broken"][0]
        return COLOURS.get(kind, COLOURS["mixed" if "+" in kind else "other"])[0]


def boxes(certificate: Certificate) -> list[GraphBox]:
    """Join operations that follow each other in one module, and mark those that break a law."""
    guilty = {(culprit.path, culprit.operation) for culprit in certificate.culprits}
    joined: list[GraphBox] = []
    for record in _without_silent(certificate.records):
        breaks = (record.path, record.operation) in guilty
        last = joined[-1] if joined else GraphBox((), False)
        names = {previous.name for previous in last.records}
        same = bool(names) and bool(record.path) and record.path == last.records[0].path
        if same and set(record.inputs) <= names:
            joined[-1] = GraphBox((*last.records, record), last.breaks or breaks)
        else:
            joined.append(GraphBox((record,), breaks))
    return joined


def _without_silent(records: Iterable[Record]) -> list[Record]:
    """Leave out operations that change nothing, joining what is before and after them."""
    origin: dict[str, str] = {}
    kept = []
    for record in records:
        inputs = tuple(dict.fromkeys(origin.get(name, name) for name in record.inputs))
        if record.operation in _SILENT and len(inputs) == 1:
            origin[record.name] = inputs[0]
        else:
            kept.append(replace(record, inputs=inputs))
    return kept


def draw(certificate: Certificate, path: str | PathLike[str]) -> None:
    """Draw a certificate's operations from top to bottom, column after column."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = boxes(certificate)
    columns = max(1, math.ceil(len(drawn) / _ROWS))
    rows = max(1, math.ceil(len(drawn) / columns))
    width, height = _COLUMN * columns + 0.4, rows + 4.6
    figure = Figure(figsize=(0.78 * width, 0.33 * height), dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-_BOX / 2 - 0.3, width - _BOX / 2 - 0.3)
    axes.set_ylim(-rows, 4.6)
    places = [(_COLUMN * (index // rows), -float(index % rows)) for index in range(len(drawn))]
    _draw_links(axes, drawn, places)
    for box, (x, y) in zip(drawn, places, strict=True):
        edge, line = (_CULPRIT_EDGE, 2.0) if box.breaks else ("#777777", 0.6)
        _draw_patch(axes, (x - _BOX / 2, y - 0.3), (_BOX, 0.6), box.colour, edge, line)
        axes.text(x, y, box.label, fontsize=7, ha="center", va="center", zorder=4)
    _draw_legend(axes, certificate, per_row=2 if columns == 1 else 4)
    figure.savefig(path)


def _draw_patch(
    axes: Axes,
    corner: tuple[float, float],
    size: tuple[float, float],
    fill: str,
    edge: str,
    line: float,
) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle(corner, *size, fc=fill, ec=edge, lw=line, zorder=3))


def _draw_links(
    axes: Axes, drawn: Sequence[GraphBox], places: Sequence[tuple[float, float]]
) -> None:
    """Draw an arrow for each dependence: straight to the next box, around others at the side."""
    home = {record.name: index for index, box in enumerate(drawn) for record in box.records}
    for index, box in enumerate(drawn):
        sources = {home[name] for record in box.records for name in record.inputs if name in home}
        for source in sorted(sources - {index}):
            (x0, y0), (x1, y1) = places[source], places[index]
            if source == index - 1 and x0 == x1:
                start, end, shape, colour = (x0, y0 - 0.3), (x1, y1 + 0.3), "arc3", "#444444"
            elif x0 == x1:  # past other boxes of the column: around them, on the right
                start, end = (x0 + _BOX / 2, y0), (x1 + _BOX / 2, y1)
                reach = 8 + 22 * (y0 - y1) / (y0 - y1 + 8)
                shape, colour = f"arc,angleA=0,angleB=0,armA={reach},armB={reach},rad=6", "#7878a0"
            else:  # into another column
                start, end, shape, colour = (
                    (x0 + _BOX / 2, y0),
                    (x1 - _BOX / 2, y1),
                    "arc3",
                    "#7878a0",
                )
            arrow = {
                "arrowstyle": "-|>",
                "color": colour,
                "lw": 0.9,
                "shrinkA": 0,
                "shrinkB": 0,
                "connectionstyle": shape,
            }
            axes.annotate("", end, start, arrowprops=arrow, zorder=2)


def _draw_legend(axes: Axes, certificate: Certificate, per_row: int) -> None:
    verdicts = "     ".join(f"{n}: {getattr(certificate, n)}" for n in ("scale", "shift", "norm"))
    left = -_BOX / 2
    axes.text(left, 4.0, verdicts, fontsize=9, weight="bold", va="center")
    for index, (name, (colour, meaning)) in enumerate(COLOURS.items()):
        x, y = left + 2.6 * (index % per_row), 3.2 - 0.6 * (index // per_row)
        edge, line = (_CULPRIT_EDGE, 2.0) if name == "culprit" else ("#777777", 0.6)
        _draw_patch(axes, (x, y - 0.18), (0.25, 0.36), colour, edge, line)
        axes.text(x + 0.35, y, meaning, fontsize=6.5, va="center")


def _shortened(label: str, length: int = 40) -> str:
    """Keep the end of a long label, which tells the most."""
    return label if len(label) <= length else "..." + label[3 - length :]
