"""Tables in the pages of the documentation, each between two marks with its name.

    python benchmarks/pages.py FOLDER

copies the CSV files and pictures that a command wrote into FOLDER to docs/data and docs/figures.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from normeq._support.tables import read_csv

DOCS = Path(__file__).parents[1] / "docs"
DATA = DOCS / "data"
FIGURES = DOCS / "figures"


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of results")
    folder = parser.parse_args().folder
    for suffix, destination in ((".csv", DATA), (".png", FIGURES)):
        for result in folder.glob(f"*{suffix}"):
            shutil.copyfile(result, destination / result.name)


if __name__ == "__main__":
    main()
