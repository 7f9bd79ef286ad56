"""The drawings of architecture.md: the layers, from pyproject.toml, and the way of an image.

python docs/drawings.py
"""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
INK, EDGE, PULL, PUSH = "#24292f", "#8c959f", "#0969da", "#1a7f37"
SHADES = ("#eef4fb", "#f6f1e7")
#: What each package is about, in a few words.
SUBJECTS = {
    "cli": "commands",
    "napari": "plugin",
    "explorer": "local web page",
    "exporting": "ONNX, bioimage.io",
    "cluster": "dask",
    "reproduce": "the paper's tables",
    "bench": "what variants cost",
    "adaptation": "tuning on your images",
    "evaluation": "PSNR over a folder",
    "explanation": "adaptive filters",
    "training": "recipes, loop",
    "denoising": "arrays and files",
    "conversion": "equivariant twins",
    "certification": "proof or culprit",
    "classical": "BM3D, NLM, ...",
    "models": "networks, weights",
    "equivariance": "measured errors",
    "nn": "layers, folding",
    "noise": "drawn, estimated",
    "images": "file formats",
    "metrics": "PSNR, SSIM",
    "_support": "atomic files, memory",
    "errors": "sentences",
}


def layers() -> list[list[str]]:
    """Return the packages of each layer, from top to bottom."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (order,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [[name.strip() for name in layer.split("|")] for layer in order]


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty drawing whose unit is an inch."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return figure, axes


def box(
    axes: Axes, x: float, y: float, width: float, height: float, title: str, text: str, color: str
) -> None:
    """Draw a box with a title and a line or two below it."""
    style = "round,pad=0,rounding_size=0.07"
    axes.add_patch(FancyBboxPatch((x, y), width, height, style, facecolor=color, edgecolor=EDGE))
    middle = x + width / 2
    axes.text(middle, y + 0.2, title, ha="center", va="center", weight="bold", size=10, color=INK)
    axes.text(middle, y + 0.3, text, ha="center", va="top", size=8.5, color=INK, linespacing=1.25)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    """Draw an arrow."""
    style = {"arrowstyle": "-|>", "mutation_scale": 13, "linewidth": 1.6, "color": color}
    axes.add_patch(FancyArrowPatch(start, end, shrinkA=0, shrinkB=0, **style))


def draw_layers() -> Figure:
    """Draw a row of boxes for each layer."""
    rows = layers()
    figure, axes = canvas(8.2, 0.68 * len(rows) + 0.15)
    for number, row in enumerate(rows):
        width = (7.2 - 0.12 * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            x = 0.75 + place * (width + 0.12)
            box(axes, x, 0.1 + 0.68 * number, width, 0.54, name, SUBJECTS[name], SHADES[number % 2])
    arrow(axes, (0.42, 0.2), (0.42, 0.68 * len(rows)), PULL)
    axes.text(0.24, 0.34 * len(rows), "imports", rotation=90, ha="center", va="center", color=PULL)
    return figure


def draw_flow() -> Figure:
    """Draw how the writer asks for bands, and how pixels answer."""
    wide, tall, gap = 1.95, 0.85, 0.4
    columns = [0.2 + number * (wide + gap) for number in range(4)]
    top, bottom = 0.5, 2.0
    figure, axes = canvas(columns[-1] + wide + 0.2, bottom + tall + 0.2)
    axes.text(0.2, 0.25, "asks for", color=PULL, size=10, va="center")
    axes.text(1.0, 0.25, "gives", color=PUSH, size=10, va="center")
    asked = [
        ("writer", "images/: copies the file,\nband by band"),
        ("bands", "bands.py: rows of\na plane, in order"),
        ("tiles", "tiles.py: with a halo,\naligned to the stride"),
        ("reader", "images/: the rows that\nthe tiles touch"),
    ]
    given = [
        ("band", "tiles in their places,\nmissing pixels put back"),
        ("back", "units.py: the units\nand dtype of the image"),
        ("denoiser", "denoiser.py: tiles of\none shape together"),
        ("standard units", "units.py: zero mean and\nunit spread, in float64"),
    ]
    for x, (above, below) in zip(columns, zip(asked, given, strict=True), strict=True):
        box(axes, x, top, wide, tall, *above, SHADES["images/" in above[1]])
        box(axes, x, bottom, wide, tall, *below, SHADES[0])
    for left, right in itertools.pairwise(columns):
        arrow(axes, (left + wide, top + tall / 2), (right, top + tall / 2), PULL)
        arrow(axes, (right, bottom + tall / 2), (left + wide, bottom + tall / 2), PUSH)
    arrow(axes, (columns[3] + wide / 2, top + tall), (columns[3] + wide / 2, bottom), PUSH)
    arrow(axes, (columns[0] + wide / 2, bottom), (columns[0] + wide / 2, top + tall), PUSH)
    return figure


def main() -> None:
    """Write both drawings."""
    draw_layers().savefig(FIGURES / "layers.png", dpi=130)
    draw_flow().savefig(FIGURES / "flow.png", dpi=130)


if __name__ == "__main__":
    main()
