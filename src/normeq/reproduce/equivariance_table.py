"""Table 1 of the paper, "Equivariance properties of several image denoisers", measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from normeq._support.photograph import sample_photograph
from normeq.equivariance import TOLERANCES, Measurement, equivariance_error
from normeq.reproduce.equivariance_rows import TableEntry, entries
from normeq.reproduce.scale import Scale
from normeq.reproduce.verdicts import Claim, Verdict
from normeq.reproduce.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Row", "measure", "reproduce"]

_ROUNDING = TOLERANCES[torch.float64]
_SIGMA = 25 / 255
_SIDES = {Scale.TINY: 24, Scale.SMALL: 48, Scale.PAPER: 128}
_SIGNS = {True: "✓", False: "✗"}
_GREEN, _RED, _GREY = "#1a7f37", "#c62828", "#666666"


@dataclass(frozen=True)
class Row:
    """What was measured for one denoiser, beside what is said of it."""

    entry: TableEntry
    measured: Measurement

    @property
    def holds(self) -> tuple[bool, bool]:
        """Whether it is scale-equivariant, and whether it is shift-equivariant."""
        return self.measured.scale <= _ROUNDING, self.measured.shift <= _ROUNDING

    @property
    def agrees(self) -> bool:
        """Whether both properties are as said."""
        return self.holds == self.entry.said

    @property
    def note(self) -> str:
        """Why it differs from what is said, where it does."""
        return "" if self.agrees else self.entry.cause or "unexplained"


def measure(side: int = _SIDES[Scale.SMALL]) -> Iterator[Row]:
    """Yield a row for every denoiser of the paper's table, then for their relatives.

    Errors are the worst over gains and offsets of both signs, including the offset that brings
    the image's mean to zero, on a noisy photograph in float64.

    Parameters
    ----------
    side
        Height and width of the photograph.
    """
    image = _noisy_photograph(side)
    for entry in entries():
        yield Row(entry, _measure(entry, image))


def reproduce(workspace: Workspace) -> None:
    """Print the table, and write it as CSV and PNG."""
    from tqdm import tqdm

    measured = measure(_SIDES[workspace.scale])
    rows = list(tqdm(measured, total=len(entries()), unit="row", leave=False))
    workspace.say(as_text(rows))
    workspace.table("equivariance-table", [as_record(row) for row in rows], show=False)
    workspace.figure("equivariance-table", lambda: draw(rows))
    workspace.judge("equivariance-table", [_claim(rows)])


def _claim(rows: list[Row]) -> Claim:
    """Judge the paper's table as a whole; where it is wrong, the note says why."""
    paper = [row for row in rows if row.entry.section == rows[0].entry.section]
    differing = [row for row in paper if not row.agrees]
    return Claim(
        "Which denoisers are scale- and shift-equivariant",
        f"its table of {len(paper)} denoisers",
        f"{len(paper) - len(differing)} of {len(paper)} as it says",
        Verdict.FAILS if differing else Verdict.HOLDS,
        "; ".join(f"{row.entry.name}: {row.note}" for row in differing),
    )


def as_text(rows: list[Row]) -> str:
    """Lay the table out for a terminal: ticks and crosses, errors, and what is said."""
    width = max(len(row.entry.name) for row in rows)
    lines = []
    for section in dict.fromkeys(row.entry.section for row in rows):
        lines += ["", f"{section:<{width}}  {'scale':<10}  {'shift':<10}  said  agrees"]
        for row in (row for row in rows if row.entry.section == section):
            cells = "  ".join(
                f"{_SIGNS[held]} {error:<8.1e}"
                for held, error in zip(row.holds, _errors(row), strict=True)
            )
            said = " ".join(_SIGNS[property] for property in row.entry.said)
            agrees = "yes" if row.agrees else f"no: {row.note}"
            lines.append(f"{row.entry.name:<{width}}  {cells}  {said}   {agrees}")
    return "\n".join(lines[1:])


def as_record(row: Row) -> dict[str, str]:
    """Lay a row out for machines: errors in spreads of the image, the offset in its units."""
    worst = row.measured.worst
    verdicts = {
        name: "yes" if held else "no"
        for name, held in zip(
            ("scale", "shift", "said_scale", "said_shift", "agrees"),
            (*row.holds, *row.entry.said, row.agrees),
            strict=True,
        )
    }
    return {
        "section": row.entry.section,
        "denoiser": row.entry.name,
        "scale_error": f"{row.measured.scale:.1e}",
        "shift_error": f"{row.measured.shift:.1e}",
        "worst_gain": f"{worst['scale'].gain:g}",
        "worst_offset": f"{worst['shift'].offset:.3g}",
        **verdicts,
        "cause": row.note,
    }


def draw(rows: list[Row]) -> Figure:
    """Draw the table, a line for each denoiser; what differs from what is said is framed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 0.24 * len(rows) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    line = 0.0
    previous = ""
    for row in rows:
        if row.entry.section != previous:
            previous = row.entry.section
            line += 0.6
            axes.text(0, line, previous, weight="bold")
            for x, title in ((4.0, "scale"), (5.9, "shift"), (7.8, "said")):
                axes.text(x, line, title, weight="bold")
            line += 1.1
        axes.text(0, line, row.entry.name)
        for x, held, said, error in zip(
            (4.0, 5.9), row.holds, row.entry.said, _errors(row), strict=True
        ):
            frame = None if held == said else {"fill": False, "edgecolor": _RED}
            axes.text(x, line, _SIGNS[held], color=_GREEN if held else _RED, bbox=frame)
            axes.text(x + 0.35, line, f"{error:.0e}", color=_GREY)
        axes.text(7.8, line, " ".join(_SIGNS[said] for said in row.entry.said), color=_GREY)
        line += 1.0
    axes.set(xlim=(0, 8.6), ylim=(line, -0.5))
    return figure


def _errors(row: Row) -> tuple[float, float]:
    return row.measured.scale, row.measured.shift


def _noisy_photograph(side: int) -> NDArray[np.float64]:
    clean = sample_photograph(side)
    noisy: NDArray[np.float64] = clean + _SIGMA * np.random.default_rng(0).standard_normal(
        clean.shape
    )
    return noisy


def _measure(entry: TableEntry, image: NDArray[np.float64]) -> Measurement:
    denoiser = entry.build()
    sigma = None if entry.blind else _SIGMA
    given: Any = image
    if isinstance(denoiser, torch.nn.Module):
        denoiser, given = denoiser.double(), torch.from_numpy(image)[None, None]
    return equivariance_error(denoiser, given, sigma)
