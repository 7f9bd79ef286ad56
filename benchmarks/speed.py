"""The tables of docs/speed.md and the README, written again from speed.csv and denoise-time.csv.

normeq bench --compile --model default -o docs
python benchmarks/speed.py
"""

from __future__ import annotations

import csv
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
README = DOCS.parent / "README.md"
VARIANTS = ("ordinary", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped", "affine only")
COLUMNS = [
    *((variant, "fast", variant) for variant in (*VARIANTS, "sort only")),
    ("norm-equiv", "compiled", "norm-equiv, compiled"),
    ("norm-equiv", "as built", "norm-equiv, as built"),
]


def rows(name: str) -> list[dict[str, str]]:
    with (DOCS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ratios(columns: list[tuple[str, str, str]]) -> str:
    """Return a line for each network and job, a column for each variant and path."""
    measured = rows("speed.csv")
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    for row in measured:
        key = row["network"], row["job"], row["variant"], row["path"]
        ratio_and_spread = float(row["ratio"]), float(row["spread"])
        found[key] = min(ratio_and_spread, found.get(key, ratio_and_spread))  # the fastest layout
    titles = ["network", "multiply-adds a pixel", "job", *(title for *_, title in columns)]
    lines = [" | ".join(titles), " | ".join(["---"] * len(titles))]
    macs = {row["network"]: int(row["macs_per_pixel"]) for row in measured}
    for network, job in dict.fromkeys((row["network"], row["job"]) for row in measured):
        values = [found.get((network, job, variant, path)) for variant, path, _ in columns]
        cells = ["{:.2f} ± {:.2f}".format(*value) if value else "" for value in values]
        lines.append(" | ".join([network, f"{macs[network]:,}", job, *cells]))
    shape = "{batch}x1x{size}x{size}, threads: {threads}".format(**measured[0])
    return "\n".join([*(f"| {line} |" for line in lines), "", f"Input {shape}."])


def parts() -> str:
    """Return a line for each part of the work on a file."""
    lines = ["part | seconds a megapixel", "--- | ---"]
    lines += [
        f"{row['part']} | {float(row['seconds_per_megapixel']):.3f}"
        for row in rows("denoise-time.csv")
    ]
    return "\n".join(f"| {line} |" for line in lines)


def fill(page: Path, name: str, table: str) -> None:
    """Write a table between its markers."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}", encoding="utf-8")


def main() -> None:
    fill(DOCS / "speed.md", "ratios", ratios(COLUMNS))
    fill(DOCS / "speed.md", "parts", parts())
    fill(README, "ratios", ratios(COLUMNS[1:4]))


if __name__ == "__main__":
    main()
