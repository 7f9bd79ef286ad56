"""Tables and figures of measurements, written whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normeq._support.atomic import replacing
from normeq.errors import UsageError, writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def make_folder(path: Path) -> None:
    """Make sure that a folder for results exists, before the time to compute them is spent."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of the same columns, at least one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "scores.csv")
    >>> write_csv(path, [{"sigma": 15, "psnr": 32.5}])
    >>> print(path.read_text(), end="")
    sigma,psnr
    15,32.5
    """
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with replacing(path) as temporary:
        temporary.write_text(table.getvalue(), encoding="utf-8")


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay rows of the same columns out for a terminal.

    >>> print(text_table([{"set": "Set12", "psnr": "30.9"}, {"set": "BSD68", "psnr": "29.5"}]))
    set    psnr
    Set12  30.9
    BSD68  29.5
    """
    lines = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def save_figure(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a figure and write it as PNG."""
    try:
        figure = draw()
    except ImportError as error:
        raise UsageError("figures need matplotlib: pip install 'normeq[plot]'.") from error
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
