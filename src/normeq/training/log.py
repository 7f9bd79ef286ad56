"""What a run writes down: CSV files, TensorBoard, a curve and a progress bar."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from normeq._support.tables import save_figure, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter

Row = Mapping[str, float]


class Table:
    """A CSV file that grows by rows; resuming drops the rows of steps that will be repeated."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        self._columns: list[str] = []
        self._rewrite([row for row in read_table(path) if row["step"] <= step])

    def add(self, row: Row) -> None:
        """Append a row; columns that it is the first to have are empty in the rows before."""
        if not set(row) <= set(self._columns):
            self._rewrite([*read_table(self._path), row])
            return
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(row)

    def _rewrite(self, rows: Sequence[Row]) -> None:
        self._columns = list(dict.fromkeys(name for row in rows for name in row))
        if not rows:
            self._path.unlink(missing_ok=True)
            return
        write_csv(self._path, [{**dict.fromkeys(self._columns), **row} for row in rows])


def read_table(path: Path) -> list[dict[str, float]]:
    """Read a CSV file of numbers; an incomplete last row, left by a kill, is dropped.

    Cells that are empty are not in their row.
    """
    if not path.exists():
        return []
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        for texts in csv.DictReader(file):
            try:
                numbers = {name: float(text) for name, text in texts.items() if text != ""}
                rows.append({**numbers, "step": int(numbers["step"])})
            except (TypeError, ValueError, KeyError):
                break
    return rows


class Log:
    """The records of a run in its folder, from `step` on."""

    def __init__(self, folder: Path, step: int, steps: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._folder = folder
        self._training = Table(folder / "training.csv", step)
        self._validation = Table(folder / "validation.csv", step)
        self._board: SummaryWriter = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
        terminal = sys.stderr.isatty()
        # A log file gets a line now and then instead of ten a second.
        self._bar: tqdm[Any] = tqdm(
            total=steps, initial=step, unit="step", mininterval=0.1 if terminal else 30.0
        )
        self._shown: dict[str, str] = {}

    def step(self) -> None:
        """Move the progress bar by one step."""
        self._bar.update()

    def training(self, row: Row) -> None:
        """Record a line of training: at least step, loss and samples_per_second."""
        self._training.add(row)
        self._write_board("training", row)
        self._show(loss=f"{row['loss']:.3g}", samples=f"{row['samples_per_second']:.3g}/s")

    def validation(self, row: Row) -> None:
        """Record a validation: step and psnr, then any detail, and draw the curve again."""
        self._validation.add(row)
        self._write_board("validation", row)
        self._show(psnr=f"{row['psnr']:.2f}")
        save_figure(self._folder / "curve.png", lambda: draw_curve(self._folder))

    def _write_board(self, tag: str, row: Row) -> None:
        for name, value in row.items():
            if name != "step":
                self._board.add_scalar(f"{tag}/{name}", value, int(row["step"]))

    def _show(self, **values: str) -> None:
        self._shown.update(values)
        self._bar.set_postfix(self._shown, refresh=False)

    def close(self) -> None:
        """Finish the progress bar and the files."""
        self._bar.close()
        self._board.close()


def draw_curve(folder: Path) -> Figure:
    """Draw the loss and the validation PSNR of a run against its steps."""
    from matplotlib.figure import Figure

    training = read_table(folder / "training.csv")
    validation = read_table(folder / "validation.csv")
    figure = Figure(figsize=(7, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.semilogy([row["step"] for row in training], [row["loss"] for row in training], lw=0.8)
    upper.set_ylabel("training loss")
    for name in dict.fromkeys(n for row in validation for n in row if n.startswith("psnr")):
        style = {"lw": 2.0, "color": "black"} if name == "psnr" else {"lw": 0.8}
        label = "mean" if name == "psnr" else f"σ = {name.removeprefix('psnr_').replace('_', ' ')}"
        points = [(row["step"], row[name]) for row in validation if name in row]
        lower.plot(*zip(*points, strict=True), marker=".", label=label, **style)
    if validation:
        lower.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    lower.set_ylabel("validation PSNR (dB)")
    lower.set_xlabel("step")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    return figure
