"""How often intervals for the error of a result hold the true one, and how often it warns.

    python benchmarks/quality.py --set12 FOLDER --fmd FOLDER --cc15 FOLDER

measures the square of 256 x 256 pixels in the middle of each image: Set12 with white noise of
several levels, FMD and CC15 with the noise that they have. The noise is given, as what it really
is, or estimated from the noisy image; wide-field images are also denoised as if their noise was
white. What is given for a real pair is a line fitted to variance against signal, with its lack of
fit as its error, and the correlation. The rows go to docs/data/quality.csv, a table to
docs/quality.md, pictures to docs/figures. Rows that the file has already are not measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, FIGURES, fill, markdown
from tqdm import tqdm

import normeq
from normeq._support.tables import read_csv, save_figure, write_csv
from normeq.adaptation.assessment import assess
from normeq.adaptation.quality_figure import quality_figure
from normeq.denoising.arrays import walk_over
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions
from normeq.images import read
from normeq.noise import Correlation, NoiseModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CSV, PAGE = DATA / "quality.csv", DOCS / "quality.md"
LEVELS = (5.0, 15.0, 25.0, 50.0)
SIDE = 256
PROBES = 1
LAGS = 5
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """A noisy image, the truth, and what is said about the noise."""

    group: str
    name: str
    noise: str
    noisy: Floats
    clean: Floats
    options: dict[str, Any]


def middle(image: NDArray[np.uint8]) -> Floats:
    """Return the square in the middle of an image."""
    rows, columns = (
        slice((extent - SIDE) // 2, (extent + SIDE) // 2) for extent in image.shape[:2]
    )
    return image[rows, columns].astype(np.float64)


def set12_cases(folder: Path) -> Iterator[Case]:
    """Yield Set12 with white noise, whose level is given or estimated."""
    for path in sorted(folder.glob("*.png")):
        clean = middle(read(path))
        for sigma in LEVELS:
            rng = np.random.default_rng([int(path.stem), int(sigma)])
            noisy = clean + rng.normal(0, sigma, clean.shape)
            name = f"{path.stem} {sigma:g}"
            given = {"sigma": sigma, "noise": "gaussian"}
            yield Case("Set12", name, "given", noisy, clean, given)
            yield Case("Set12", name, "estimated", noisy, clean, {})


def real_cases(group: str, name: str, noisy: Path, clean: Path) -> Iterator[Case]:
    """Yield a real pair, whose noise is given as a model fitted to the pair, or estimated."""
    pair = middle(read(noisy)), middle(read(clean))
    channels = {"channel_axis": -1} if pair[0].ndim == 3 else {}
    known = {"noise": fitted(*pair), **channels}
    yield Case(group, name, "given", *pair, known)
    yield Case(group, name, "estimated", *pair, channels)
    if name.startswith("WideField"):
        yield Case(group, name, "as white", *pair, {"noise": "gaussian"})


def fitted(noisy: Floats, clean: Floats) -> NoiseModel:
    """Return the noise model of a pair: variance as a line in the signal, and correlation."""
    noise = noisy - clean
    gain, base = np.polyfit(clean.ravel(), noise.ravel() ** 2, 1)
    darkest, brightest = np.quantile(clean, (0.01, 0.99))
    mean, variance = float(clean.mean()), float((noise**2).mean())
    if gain < 0:
        gain, base = 0.0, variance
    elif gain * darkest + base < 0.01 * variance:
        gain = 0.99 * variance / (mean - darkest)
        base = variance - gain * mean
    planes = noise[..., None] if noise.ndim == 2 else noise
    rho = np.mean([autocorrelation(planes[..., c]) for c in range(planes.shape[-1])], 0)
    is_white = max(rho[0, 1], rho[1, 0]) < 0.05
    misfit = lack_of_fit(clean, noise, float(gain), float(base))
    return NoiseModel(
        gain=float(gain),
        base=float(base),
        darkest=float(darkest),
        mean=mean,
        brightest=float(brightest),
        correlation=Correlation() if is_white else Correlation(tuple(map(tuple, rho.tolist()))),
        covariance=(0.0, 0.0, (misfit * variance) ** 2),
    )


def lack_of_fit(clean: Floats, noise: Floats, gain: float, base: float) -> float:
    """Return by how much the variance differs from the line at some levels, relative to it."""
    order = np.argsort(clean.ravel(), kind="stable")
    parts = np.array_split(order, 8)
    found = np.array([(noise.ravel()[part] ** 2).mean() for part in parts])
    line = np.array([gain * clean.ravel()[part].mean() + base for part in parts])
    return float(np.sqrt(np.mean((found - line) ** 2)) / found.mean())


def autocorrelation(noise: Floats) -> Floats:
    """Return the autocorrelation at small distances, the mean of both diagonals."""
    noise = noise - noise.mean()
    height, width = noise.shape
    rho = np.empty((LAGS + 1, LAGS + 1))
    for down in range(LAGS + 1):
        for right in range(LAGS + 1):
            one = noise[: height - down, : width - right] * noise[down:, right:]
            other = noise[: height - down, right:] * noise[down:, : width - right]
            rho[down, right] = (one.mean() + other.mean()) / 2
    return rho / rho[0, 0]


def cases(given: argparse.Namespace) -> list[Case]:
    """Return all cases of the folders that are given."""
    found = [*set12_cases(given.set12)] if given.set12 else []
    seen: set[bytes] = set()
    for path in sorted((given.fmd / "raw").iterdir()) if given.fmd else ():
        if path.read_bytes() not in seen:  # two files of the set are the same
            seen.add(path.read_bytes())
            group = f"FMD {path.name.split('_')[0]}"
            found += real_cases(group, path.stem, path, given.fmd / "gt" / path.name)
    for path in sorted(given.cc15.glob("*_real.png")) if given.cc15 else ():
        truth = path.with_name(path.name.replace("_real", "_mean"))
        found += real_cases("CC15", path.stem.removesuffix("_real"), path, truth)
    return found


def measured(case: Case) -> dict[str, Any]:
    """Return the row of a case."""
    noise = NoiseOptions(case.options.get("sigma"), case.options.get("noise", "auto"))
    axis = case.options.get("channel_axis")
    walk = walk_over(case.noisy, Choice(), noise, WalkOptions(), channel_axis=axis)
    found = assess(walk, noise, PROBES)
    report, sums = found.report, found.sums
    result = normeq.denoise(case.noisy, **case.options)
    chance = np.sqrt(sums.fluctuation + sums.probing) / sums.pixels
    return {
        "set": case.group,
        "image": case.name,
        "noise": case.noise,
        "rmse": f"{np.sqrt(np.mean((result - case.clean) ** 2)):.4g}",
        "estimate": f"{report.rmse:.4g}",
        "low": f"{report.low:.4g}",
        "high": f"{report.high:.4g}",
        "sigma": f"{np.sqrt(np.mean((case.noisy - case.clean) ** 2)):.4g}",
        "sigma estimate": f"{report.sigma:.4g}",
        "level error": f"{2 * report.sigma_error:.3g}",
        "stein": f"{sums.stein / sums.pixels:.5g}",
        "stein error": f"{chance:.3g}",
        "tweedie": f"{sums.divergence / sums.pixels:.5g}",
        "warnings": "; ".join(each.check for each in report.findings if not each.is_fine),
    }


def coverage_table(rows: list[dict[str, str]]) -> str:
    """Return how often intervals hold the truth, how wide they are, and how often they warn."""
    lines = []
    groups = dict.fromkeys((row["set"], row["noise"]) for row in rows)
    for noise in ("given", "estimated"):
        lines.append(_line(f"all, noise {noise}", [row for row in rows if row["noise"] == noise]))
    for group, noise in groups:
        some = [row for row in rows if (row["set"], row["noise"]) == (group, noise)]
        lines.append(_line(f"{group}, noise {noise}", some))
    header = ["images", "count", "truth inside", "median width (factor in MSE)"]
    return markdown([*header, "quality can be told", "median error of the RMSE", "warned"], lines)


def _line(name: str, rows: list[dict[str, str]]) -> list[str]:
    values = [[float(row[key]) for key in ("low", "rmse", "high", "estimate")] for row in rows]
    inside = fmean(low <= true <= high for low, true, high, _ in values)
    widths = [(high / low) ** 2 for low, _, high, _ in values]
    error = median(abs(estimate / true - 1) for _, true, _, estimate in values)
    warned = fmean(bool(row["warnings"]) for row in rows)
    told = fmean(width <= 2 for width in widths)
    numbers = [f"{inside:.0%}", f"{median(widths):.2f}", f"{told:.0%}", f"{error:.0%}"]
    return [name, str(len(rows)), *numbers, f"{warned:.0%}"]


def scatter(rows: list[dict[str, str]]) -> Figure:
    """Draw estimates with their intervals against the truth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, noise in zip(panels, ("given", "estimated"), strict=True):
        for number, group in enumerate(dict.fromkeys(row["set"] for row in rows)):
            some = [row for row in rows if (row["set"], row["noise"]) == (group, noise)]
            true, found, low, high = (
                np.array([float(row[key]) for row in some])
                for key in ("rmse", "estimate", "low", "high")
            )
            spans = [found - low, high - found]
            style = {"fmt": "o", "ms": 3.5, "lw": 0.9, "alpha": 0.75, "color": f"C{number}"}
            axes.errorbar(true, found, yerr=spans, label=group, **style)
        ends = [1.0, 30.0]
        axes.plot(ends, ends, color="0.5", lw=0.8, zorder=0)
        axes.set(xscale="log", yscale="log", xlabel="true RMSE", title=f"noise {noise}")
        axes.grid(alpha=0.3, which="both")
    panels[0].set(ylabel="estimated RMSE, with 90 % intervals")
    panels[0].legend(fontsize=8)
    return figure


def example() -> Figure:
    """Draw the report of a photograph with noise."""
    from skimage.data import camera

    clean = camera()[60:316, 130:386].astype(np.float64)
    noisy = clean + np.random.default_rng(0).normal(0, 15, clean.shape)
    noise = NoiseOptions(15.0)
    found = assess(walk_over(noisy, Choice(), noise, WalkOptions()), noise)
    return quality_figure(found, "a photograph with white noise of sigma 15, which is stated")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("--set12", "--fmd", "--cc15"):
        parser.add_argument(name, type=Path, help="folder; without any: tables and picture only")
    rows: list[dict[str, Any]] = list(read_csv(CSV))
    done = {(row["set"], row["image"], row["noise"]) for row in rows}
    # In turn from all sets, so that an unfinished run says something about each.
    todo = [each for each in cases(parser.parse_args()) if tuple(each[:3]) not in done]
    for case in tqdm(sorted(todo, key=order_of)):
        rows.append(measured(case))
        write_csv(CSV, sorted(rows, key=lambda row: (row["set"], row["image"], row["noise"])))
    fill(PAGE, "coverage", coverage_table(rows))
    save_figure(FIGURES / "quality.png", partial(scatter, rows))
    save_figure(FIGURES / "quality-report.png", example)


def order_of(case: Case) -> float:
    """Return a number by which cases are put into an order that mixes all sets."""
    return float(np.random.default_rng(list("".join(case[:3]).encode())).random())


if __name__ == "__main__":
    main()
