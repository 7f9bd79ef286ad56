"""Timings as text, and as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

from normeq._support.tables import read_csv, save_figure, write_csv
from normeq.bench.chart import draw
from normeq.bench.variant_times import Timing
from normeq.bench.whole_command import CommandPart


def text(timings: Iterable[Timing]) -> str:
    """Return a line for each case."""
    lines = [
        f"{'network':<8} {'job':<10} {'variant':<20} {'path':<9} {'layout':<14} "
        "seconds  ratio  spread  share of peak  multiply-adds per pixel"
    ]
    lines += [
        f"{t.network:<8} {t.job:<10} {t.variant:<20} {t.path:<9} {t.layout:<14} "
        f"{t.seconds:7.3f}  {t.ratio:5.3f}  {t.spread:6.3f}  {t.peak_share:13.2f}  "
        f"{t.macs_per_pixel:21,}"
        for t in timings
    ]
    return "\n".join(lines)


def write_timings(folder: Path, timings: Sequence[Timing]) -> None:
    """Write measurements as CSV and as a chart, beside those of other networks there."""
    path = folder / "speed.csv"
    measured = {timing.network for timing in timings}
    kept = [timing for timing in read_timings(path) if timing.network not in measured]
    together = [*kept, *timings]
    write_csv(path, [_rounded(timing) for timing in together])
    save_figure(folder / "speed.png", lambda: draw(together))


def write_parts(folder: Path, parts: Sequence[CommandPart]) -> None:
    """Write where the time of ``normeq denoise`` goes."""
    write_csv(folder / "denoise-time.csv", [_rounded(part) for part in parts])


def read_timings(path: Path) -> list[Timing]:
    """Read what `write_timings` wrote; nothing if that was another version, or never."""
    kinds = get_type_hints(Timing)
    return [_timing(row, kinds) for row in read_csv(path) if list(row) == list(kinds)]


def _timing(row: dict[str, str], kinds: dict[str, Any]) -> Timing:
    cells: dict[str, Any] = {
        name: kinds[name](cell) if kinds[name] in (int, float) else cell
        for name, cell in row.items()
    }
    return Timing(**cells)


def _rounded(row: Timing | CommandPart) -> dict[str, Any]:
    return {
        name: f"{value:.4g}" if isinstance(value, float) else value
        for name, value in asdict(row).items()
    }
