"""Every candidate that was measured on the test sets, shipped or not: docs/data/candidates.csv.

Weights are chosen in validation. This list shows how often the test sets were looked at all the
same. `benchmarks/models.py --ship` adds to it.
"""

from __future__ import annotations

from typing import Any

from pages import DATA, markdown

from normeq._support.tables import read_csv, write_csv

CSV = DATA / "candidates.csv"


def add(candidate: str, scores: dict[str, dict[str, str]]) -> None:
    """Add the PSNR of a candidate, by test set and noise level, as `denoise` uses it."""
    rows: list[dict[str, Any]] = [
        {"candidate": candidate, "test set": test, "psnr": " / ".join(levels.values())}
        for test, levels in scores.items()
    ]
    write_csv(CSV, [*read_csv(CSV), *rows])


def table() -> str:
    """Return a line for each candidate, a column for each test set."""
    rows = read_csv(CSV)
    tests = list(dict.fromkeys(row["test set"] for row in rows))
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row["candidate"], {})[row["test set"]] = row["psnr"]
    lines = [[name, *(psnr.get(test, "") for test in tests)] for name, psnr in found.items()]
    return markdown(["candidate", *tests], lines)
