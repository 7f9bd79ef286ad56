"""The scores and sizes of the shipped models: docs/data/models.csv, tables of docs/models.md.

    python benchmarks/models.py --test Set12=FOLDER --test BSD68=FOLDER --color-test CBSD68=FOLDER
    python benchmarks/models.py ... --ship default=runs/gray/best.safetensors --only default

With ``--ship`` the weights of a run become a shipped model first: its card is that of the run,
with the scores on the test sets added, and `weights/releases.csv` gets a new version. The noise is
that of ``normeq evaluate`` with the same folders, noise levels and seed. Every model is measured as
``normeq.denoise(y)`` uses it, which estimates the noise; when it is told the true level; and when
it is told nothing. The page also lists the stages of training that the cards tell of.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import candidates
import numpy as np
import torch
from pages import DATA, DOCS, fill, markdown
from tqdm import tqdm

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.bench.arithmetic import multiply_adds
from normeq.cli.cards import history
from normeq.denoising.noise_options import NoiseName
from normeq.evaluation import evaluate, image_denoiser, means
from normeq.images.folder import Folder, read_folder
from normeq.images.provenance import file_digest
from normeq.models import shipped
from normeq.models.releases import installed_release

SIGMAS = (15, 25, 50)
LEVELS = [str(sigma) for sigma in SIGMAS]
CSV, PAGE = DATA / "models.csv", DOCS / "models.md"
WEIGHTS = DOCS.parent / "src" / "normeq" / "weights"
RELEASES = WEIGHTS / "releases.csv"
KEY = ("model", "told", "test_set", "sigma")
# What a model is told of the noise, and what that means to `image_denoiser`.
ESTIMATED, EXACTLY, NOTHING = "an estimate", "sigma", "nothing"
ASSUMPTIONS: dict[str, NoiseName | None] = {
    ESTIMATED: "auto",
    EXACTLY: None,
    NOTHING: "gaussian",
}
# Published figures (dB) at sigma 15, 25 and 50, to set ours beside.
PUBLISHED = {
    ("BM3D", "Set12"): (32.37, 29.97, 26.72),
    ("BM3D", "BSD68"): (31.07, 28.57, 25.62),
    ("CBM3D", "CBSD68"): (33.52, 30.71, 27.38),
    ("FFDNet", "Set12"): (32.75, 30.43, 27.32),
    ("FFDNet", "BSD68"): (31.63, 29.19, 26.29),
    ("FFDNet", "CBSD68"): (33.87, 31.21, 27.96),
}

# Rows of benchmarks/real_noise.py, by method and images: the model that they are scores of, and
# what it is told.
REAL_NOISE = DATA / "real-noise.csv"
REAL = {
    ("default, auto", "FMD, all"): ("default-real", ESTIMATED),
    ("default, auto", "CC15"): ("default-color-real", ESTIMATED),
    ("default, gaussian", "FMD, all"): ("default", NOTHING),
    ("default, gaussian", "CC15"): ("default-color", NOTHING),
}

PHOTOGRAPHS = DATA / "training-photographs.csv"
# What the licences of a family have in common, wherever they are quoted from.
LICENCES = {"CC0": "^CC0", "CC-BY-SA": "(?i)by-sa", "CC-BY": "(?i)cc.by|/by/|Attribution"}

Rows = list[dict[str, Any]]


def measure(model: str, tests: dict[str, Folder]) -> Rows:
    """Return the mean scores of a model, for each test set, noise level and knowledge of it."""
    rows = []
    net = normeq.load(model)
    told = {"never": [NOTHING], "always": [EXACTLY]}.get(net.takes_sigma, list(ASSUMPTIONS))
    for knowledge in told:
        denoiser, channels = image_denoiser(model, ASSUMPTIONS[knowledge])
        for name, folder in tests.items():
            if folder.images[0].shape[0] != channels:
                continue
            steps = tqdm(
                evaluate(denoiser, folder, SIGMAS),
                total=len(SIGMAS) * len(folder.images),
                desc=f"{model}, told {knowledge}, on {name}",
            )
            rows += [
                {
                    "model": model,
                    "told": knowledge,
                    "test_set": name,
                    "sigma": f"{score.sigma:g}",
                    "psnr": f"{score.psnr:.2f}",
                    "ssim": f"{score.ssim:.4f}",
                }
                for score in means(list(steps))
            ]
    return rows


def ship(name: str, weights: str, tests: dict[str, Folder]) -> Rows:
    """Make the weights of a run a model of the package, with its scores on the card."""
    rows = [row | {"model": name} for row in measure(weights, tests)]
    scores: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["told"] == rows[0]["told"]:
            scores.setdefault(row["test_set"], {})[row["sigma"]] = row["psnr"]
    net = normeq.load(weights)
    file = WEIGHTS / f"{name}.safetensors"
    normeq.save(net, file, net.card | {"psnr": scores, "photographs": photographs()})
    before = installed_release(name)
    version = 1 if before is None else before.version + 1
    today = datetime.now(UTC).date().isoformat()
    with RELEASES.open("a", encoding="utf-8") as table:
        table.write(f"{name},{version},{today},{file_digest(file)}\n")
    candidates.add(f"`{name}@{version}`", scores)
    return rows


def real_rows() -> Rows:
    """Return the scores on pairs of real noisy and clean images."""
    rows = []
    for row in read_csv(REAL_NOISE):
        if (row["method"], row["images"]) in REAL:
            model, told = REAL[row["method"], row["images"]]
            rows.append(
                {
                    **row,
                    "model": model,
                    "told": told,
                    "test_set": row["images"].removesuffix(", all"),
                }
            )
    return rows


def photographs() -> dict[str, Any]:
    """Count the photographs that the shipped models were trained on, by licence and by source."""
    used = [row for row in read_csv(PHOTOGRAPHS) if not row["left out because"]]
    families = Counter(family_of(row["licence"]) for row in used)
    sources = Counter(row["source"] for row in used)
    return {
        "licences": dict(families.most_common()),
        "sources": dict(sources.most_common()),
        "list": f"docs/data/{PHOTOGRAPHS.name}",
    }


def family_of(licence: str) -> str:
    """Return which family a licence belongs to: the licence itself if to none."""
    found = [family for family, pattern in LICENCES.items() if re.search(pattern, licence)]
    return found[0] if found else licence


def scores_table(rows: Rows, score: str, digits: int, published: bool) -> str:
    """Return one of the scores as a table, published figures below ours."""
    tests = list(dict.fromkeys(row["test_set"] for row in rows))
    cells: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        found = cells.setdefault((f"`{row['model']}`", row["told"]), {})
        found.setdefault(row["test_set"], []).append(f"{float(row[score]):.{digits}f}")
    for (method, test), figures in PUBLISHED.items() if published else ():
        found = cells.setdefault((f"{method} (published)", EXACTLY), {})
        found[test] = [f"{x:.{digits}f}" for x in figures]
    lines = [
        [*about, *(" / ".join(found.get(test, [])) for test in tests)]
        for about, found in cells.items()
    ]
    return markdown(["model", "is told", *tests], lines)


def sizes_table() -> str:
    """Return how large each network is, and how long it was trained."""
    lines = []
    for name in shipped():
        net = normeq.load(name)
        parameters = sum(p.numel() for p in net.parameters())
        lines.append(
            [
                f"`{name}`",
                f"{multiply_adds(net, channels=net.channels):,}",
                f"{parameters:,}",
                f"{(WEIGHTS / f'{name}.safetensors').stat().st_size / 1e6:.1f}",
                f"{seconds(name, net.channels):.1f}",
                f"{sum(card['hours'] for card in history(net.card)):.1f}",
            ]
        )
    columns = ("multiply-adds a pixel", "parameters", "MB", "seconds a megapixel", "hours")
    return markdown(["model", *columns], lines)


def seconds(name: str, channels: int) -> float:
    """Return the least time of one core, of three tries, that denoising a megapixel takes."""
    image = np.random.default_rng(0).standard_normal((1024, 1024, channels), np.float32)
    options: dict[str, Any] = {"model": name, "noise": "gaussian", "bayer": "none"}
    axes = "YX" if channels == 1 else "YXS"
    times = []
    for _ in range(3):
        start = time.process_time()
        normeq.denoise(image if channels > 1 else image[..., 0], axes=axes, **options)
        times.append(time.process_time() - start)
    return min(times)


def stages_table() -> str:
    """Return the stages that led to the shipped weights, as their cards tell them."""
    numbers: dict[str, int] = {}
    lines = []
    for name in shipped():
        before = "random weights"
        for card in reversed(history(normeq.load(name).card)):
            key = json.dumps(card["recipe"] | {"init": before}, sort_keys=True)
            if key not in numbers:
                numbers[key] = len(numbers) + 1
                lines.append([str(numbers[key]), before, *stage(card), ""])
            before = f"stage {numbers[key]}"
            latest = numbers[key] - 1
        lines[latest][-1] = f"`{name}`"
    columns = ("noise", "steps", "patches a step", "sigma up to", "hours", "validation (dB)")
    return markdown(["stage", "starts from", *columns, "correlated", "shipped as"], lines)


def stage(card: Mapping[str, Any]) -> list[str]:
    """Return what a stage did, and what it reached in validation when it was told the noise."""
    data, optimization = card["recipe"]["data"], card["recipe"]["optimization"]
    mixture = data.get("mixture") or {}
    kinds = mixture.get("colored") or mixture.get("camera")
    color = ", colour" if card["recipe"]["network"]["channels"] == 3 else ""
    scores = card["validation_psnr"]
    return [
        ("many kinds" if kinds else "white") + color,
        f"{card['steps']:,}",
        f"{optimization['batch']} of {data['patch']} x {data['patch']}",
        f"{data['sigma'][1]:g}",
        f"{card['hours']:.1f}",
        " / ".join(f"{scores[level]:.2f}" if level in scores else "-" for level in LEVELS),
        f"{scores['25_correlated']:.2f}" if kinds and "25_correlated" in scores else "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--color-test", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--ship", action="append", default=[], metavar="MODEL=WEIGHTS")
    parser.add_argument("--only", action="append", metavar="MODEL", help="measure these alone")
    options = parser.parse_args()
    if options.ship and not (options.test or options.color_test):
        parser.error("--ship needs test sets, for the scores on the card")
    tests = {
        name: read_folder(Path(folder), channels)
        for given, channels in ((options.test, 1), (options.color_test, 3))
        for name, folder in (test.split("=", 1) for test in given)
    }
    ships = dict(item.split("=", 1) for item in options.ship)
    rows = read_csv(CSV)
    for name in dict.fromkeys([*ships, *shipped()]):
        if options.only and name not in options.only:
            continue
        new = ship(name, ships[name], tests) if name in ships else measure(name, tests)
        again = {tuple(row[key] for key in KEY) for row in new}
        rows = [row for row in rows if tuple(row[key] for key in KEY) not in again] + new
    rows.sort(key=lambda row: row["model"])
    write_csv(CSV, rows)
    torch.set_num_threads(1)  # which the times are of
    scores = [*rows, *real_rows()]
    fill(PAGE, "table", scores_table(scores, "psnr", 2, published=True))
    fill(PAGE, "ssim", scores_table(scores, "ssim", 3, published=False))
    fill(PAGE, "sizes", sizes_table())
    fill(PAGE, "stages", stages_table())
    fill(PAGE, "candidates", candidates.table())


if __name__ == "__main__":
    main()
