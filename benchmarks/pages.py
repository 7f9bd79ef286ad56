"""Tables in the pages of the documentation, each between two marks with its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from normeq._support.tables import read_csv

DOCS = Path(__file__).parents[1] / "docs"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def table(path: Path) -> str:
    """Return a CSV file as a table, column by column."""
    rows = read_csv(path)
    return markdown(list(rows[0]), [list(row.values()) for row in rows])


def fill(page: Path, name: str, table: str) -> None:
    """Write a table between its marks."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}", encoding="utf-8")
