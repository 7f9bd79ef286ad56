"""The scores of the shipped models, measured: docs/data/models.csv and the table of docs/models.md.

    python benchmarks/models.py --test Set12=FOLDER --test BSD68=FOLDER
    python benchmarks/models.py --test ... --ship default=runs/default/best.safetensors

With ``--ship`` the weights of a run become a shipped model first: its card is that of the run,
with the scores on the test sets added. The figures are those of ``normeq evaluate`` with the same
folders, noise levels and seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pages import DATA, DOCS, fill, markdown
from tqdm import tqdm

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.evaluation import Score, evaluate, image_denoiser, means
from normeq.images.folder import Folder, read_folder
from normeq.models import shipped

SIGMAS = (15, 25, 50)
CSV, PAGE = DATA / "models.csv", DOCS / "models.md"
WEIGHTS = DOCS.parent / "src" / "normeq" / "weights"
# Published figures (dB) at sigma 15, 25 and 50, to set ours beside.
PUBLISHED = {
    ("BM3D", "Set12"): (32.37, 29.97, 26.72),
    ("BM3D", "BSD68"): (31.07, 28.57, 25.62),
    ("FFDNet", "Set12"): (32.75, 30.43, 27.32),
    ("FFDNet", "BSD68"): (31.63, 29.19, 26.29),
}

Scores = dict[str, list[Score]]


def measure(model: str, tests: dict[str, Folder]) -> Scores:
    """Return the mean scores of a model at every noise level, for each test set."""
    denoiser, _ = image_denoiser(model)
    scores = {}
    for name, folder in tests.items():
        steps = tqdm(
            evaluate(denoiser, folder, SIGMAS),
            total=len(SIGMAS) * len(folder.images),
            desc=f"{model} on {name}",
        )
        scores[name] = means(list(steps))
    return scores


def ship(name: str, weights: str, tests: dict[str, Folder]) -> Scores:
    """Make the weights of a run a model of the package, with its scores on the card."""
    scores = measure(weights, tests)
    net = normeq.load(weights)
    psnr = {
        test: {f"{s.sigma:g}": round(s.psnr, 2) for s in found} for test, found in scores.items()
    }
    normeq.save(net, WEIGHTS / f"{name}.safetensors", net.card | {"psnr": psnr})
    return scores


def rows_of(scores: dict[str, Scores]) -> list[dict[str, str]]:
    """Return a row for each model, test set and noise level."""
    return [
        {
            "model": model,
            "test_set": test,
            "sigma": f"{s.sigma:g}",
            "psnr": f"{s.psnr:.2f}",
            "ssim": f"{s.ssim:.4f}",
        }
        for model, found in scores.items()
        for test, levels in found.items()
        for s in levels
    ]


def table() -> str:
    """Return the rows of the CSV file as a table, the published figures below them."""
    rows = read_csv(CSV)
    tests = list(dict.fromkeys(row["test_set"] for row in rows))
    cells: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        found = cells.setdefault(f"`{row['model']}`", {})
        found.setdefault(row["test_set"], []).append(f"{float(row['psnr']):.2f}")
    for (method, test), figures in PUBLISHED.items():
        cells.setdefault(f"{method} (published)", {})[test] = [f"{x:.2f}" for x in figures]
    lines = [[model, *(" / ".join(found[t]) for t in tests)] for model, found in cells.items()]
    return markdown(["model", *tests], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--ship", action="append", default=[], metavar="MODEL=WEIGHTS")
    options = parser.parse_args()
    folders = dict(test.split("=", 1) for test in options.test)
    tests = {name: read_folder(Path(folder), channels=1) for name, folder in folders.items()}
    scores = {
        name: ship(name, weights, tests)
        for name, weights in (item.split("=", 1) for item in options.ship)
    }
    for name in shipped():
        if name not in scores:
            scores[name] = measure(name, tests)
    write_csv(CSV, rows_of(dict(sorted(scores.items()))))
    fill(PAGE, "table", table())


if __name__ == "__main__":
    main()
