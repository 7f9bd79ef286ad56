"""The page docs/paper.md, from what ``normeq reproduce`` wrote into docs/paper.

Run ``normeq reproduce all --data DATA --runs runs/paper --out docs/paper`` first, then
``python benchmarks/paper_page.py``.
"""

from __future__ import annotations

from collections import Counter

from pages import DOCS, fill, markdown

from normeq._support.tables import read_csv
from normeq.reproduce.experiments import EXPERIMENTS, networks_of, reductions
from normeq.reproduce.scale import Scale

RESULTS = DOCS / "paper"
PAGE = DOCS / "paper.md"
# Tables that are too long for a page; their figures say the same.
_LONG = 40


def summary() -> str:
    """Count the verdicts of each experiment."""
    rows = []
    for name in EXPERIMENTS:
        claims = read_csv(RESULTS / f"{name}-claims.csv")
        counted = Counter(row["verdict"] for row in claims)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counted.items())
        hours = claims[0]["hours"] if claims else ""
        rows.append([f"[{name}](#{name})", verdicts or "not measured yet", hours])
    return markdown(["experiment", "verdicts", "hours of training"], rows)


def section(name: str) -> str:
    """Return claims, tables and figures of one experiment."""
    command = f"normeq reproduce {name} --out docs/paper --data DATA --runs runs/paper"
    claims = read_csv(RESULTS / f"{name}-claims.csv")
    parts = [f"```\n{command}\n```"]
    if not claims:
        return f"{parts[0]}\n\nNot measured yet."
    columns = ["claim", "paper", "ours", "verdict", "note"]
    parts.append(markdown(columns, [[row[column] for column in columns] for row in claims]))
    for path in sorted(RESULTS.glob(f"{name}*.csv")):
        rows = read_csv(path)
        if path.stem != f"{name}-claims" and len(rows) <= _LONG:
            parts.append(markdown(list(rows[0]), [list(row.values()) for row in rows]))
    for path in sorted(RESULTS.glob(f"{name}*.png")):
        parts.append(f"![{path.stem}](paper/{path.name})")
    return "\n\n".join(parts)


def main() -> None:
    fill(PAGE, "summary", summary())
    reduced = reductions(networks_of(EXPERIMENTS, Scale.SMALL), Scale.SMALL)
    fill(PAGE, "reductions", "\n".join(f"- {line}" for line in reduced))
    for name in EXPERIMENTS:
        fill(PAGE, name, section(name))


if __name__ == "__main__":
    main()
