"""The tables of docs/speed.md and the README, written again from speed.csv and denoise-time.csv.

normeq bench --compile --model default -o runs/bench
python benchmarks/pages.py runs/bench
python benchmarks/speed.py
"""

from __future__ import annotations

from pages import DATA, DOCS, fill, markdown

from normeq._support.tables import read_csv

README = DOCS.parent / "README.md"
VARIANTS = ("ordinary", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped", "affine only")
COLUMNS = [
    *((variant, "fast", variant) for variant in (*VARIANTS, "sort only")),
    ("norm-equiv", "compiled", "norm-equiv, compiled"),
    ("norm-equiv", "as built", "norm-equiv, as built"),
]


def ratios(columns: list[tuple[str, str, str]]) -> str:
    """Return a line for each network and job, a column for each variant and path."""
    measured = read_csv(DATA / "speed.csv")
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    for row in measured:
        key = row["network"], row["job"], row["variant"], row["path"]
        ratio_and_spread = float(row["ratio"]), float(row["spread"])
        found[key] = min(ratio_and_spread, found.get(key, ratio_and_spread))  # the fastest layout
    titles = ["network", "multiply-adds per pixel", "job", *(title for *_, title in columns)]
    macs = {row["network"]: int(row["macs_per_pixel"]) for row in measured}
    lines = []
    for network, job in dict.fromkeys((row["network"], row["job"]) for row in measured):
        values = [found.get((network, job, variant, path)) for variant, path, _ in columns]
        cells = ["{:.2f} ± {:.2f}".format(*value) if value else "" for value in values]
        lines.append([network, f"{macs[network]:,}", job, *cells])
    shape = "{batch}x1x{size}x{size}, threads: {threads}".format(**measured[0])
    return f"{markdown(titles, lines)}\n\nInput {shape}."


def parts() -> str:
    """Return a line for each part of the work on a file."""
    measured = read_csv(DATA / "denoise-time.csv")
    lines = [[row["part"], f"{float(row['seconds_per_megapixel']):.3f}"] for row in measured]
    return markdown(["part", "seconds per megapixel"], lines)


def main() -> None:
    fill(DOCS / "speed.md", "ratios", ratios(COLUMNS))
    fill(DOCS / "speed.md", "parts", parts())
    fill(README, "ratios", ratios(COLUMNS[1:4]))


if __name__ == "__main__":
    main()
