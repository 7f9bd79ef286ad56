"""Twins trained at one noise level, measured at all the others: the paper's claim of robustness.

Trains the recipes ``twin-*`` (the same network, data, steps; only the variant differs) at
sigma 25 alone, evaluates each from sigma 5 to 100, and writes a CSV file and a plot:

    python benchmarks/robustness.py --data TRAINING --validation HELD_OUT --test TEST --runs RUNS

Runs that were interrupted are resumed, finished ones are kept. With ``--plot-only`` the plot is
drawn again from the CSV file.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean

from pages import DATA, FIGURES
from tqdm import tqdm

from normeq._support.tables import read_csv, write_csv
from normeq.evaluation import evaluate, image_denoiser
from normeq.images.folder import read_folder
from normeq.training import checkpoint, load_recipe, shipped_recipes, train

SIGMAS = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100)
OUT = DATA / "robustness.csv"
PLOT = FIGURES / "robustness.png"


def twins() -> list[str]:
    return [name for name in shipped_recipes() if name.startswith("twin-")]


def trained(name: str, options: argparse.Namespace) -> Path:
    """Return the last weights of a twin, after training what is left of it."""
    run = options.runs / name
    resume = bool(checkpoint.stored(run / "checkpoints"))
    recipe = load_recipe(name, options.overrides)
    train(recipe, options.data, run, validation=options.validation, resume=resume)
    return run / "last.safetensors"


def measure(options: argparse.Namespace) -> None:
    test = read_folder(options.test, channels=1)
    rows = []
    for name in twins():
        denoiser, _ = image_denoiser(str(trained(name, options)))
        for sigma in tqdm(SIGMAS, desc=name):
            scores = list(evaluate(denoiser, test, [sigma]))
            psnr, ssim = (fmean(getattr(s, key) for s in scores) for key in ("psnr", "ssim"))
            variant = name.removeprefix("twin-")
            rows.append({"variant": variant, "sigma": sigma, "psnr": psnr, "ssim": ssim})
    write_csv(
        options.out,
        [row | {"psnr": f"{row['psnr']:.3f}", "ssim": f"{row['ssim']:.4f}"} for row in rows],
    )


def plot(table: Path, picture: Path) -> None:
    """Draw PSNR against sigma."""
    from matplotlib.figure import Figure

    rows = read_csv(table)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for variant in dict.fromkeys(row["variant"] for row in rows):
        points = [(float(r["sigma"]), float(r["psnr"])) for r in rows if r["variant"] == variant]
        axes.plot(*zip(*points, strict=True), marker=".", label=variant)
    axes.axvline(25, color="gray", ls=":", lw=1)
    axes.annotate("trained here", (25, axes.get_ylim()[0]), (3, 4), textcoords="offset points")
    axes.set(xlabel="σ of the noise (out of 255)", ylabel="PSNR (dB)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of training images")
    parser.add_argument("--validation", type=Path, help="folder of images for validation")
    parser.add_argument("--test", type=Path, help="folder of test images")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--out", type=Path, default=OUT, help="CSV file")
    parser.add_argument("--plot", type=Path, default=PLOT, help="PNG file")
    parser.add_argument("--set", action="append", dest="overrides", help="key=value of the recipes")
    parser.add_argument("--plot-only", action="store_true", help="only draw the CSV file again")
    options = parser.parse_args()
    if not options.plot_only:
        if None in (options.data, options.test):
            parser.error("--data and --test are needed, except with --plot-only")
        measure(options)
    plot(options.out, options.plot)


if __name__ == "__main__":
    main()
