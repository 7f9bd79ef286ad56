"""How well the noise of an image is estimated from the image alone.

    python benchmarks/noise_accuracy.py --photos PHOTOS [--pairs NAME=NOISY:CLEAN ...]
    python benchmarks/noise_accuracy.py --page-only

draws noise over a grid of gain, read noise, correlation and content (photographs of a folder, and
synthetic microscopy scenes), estimates it, and writes the error of sigma at mid signal. With
``--pairs``, sets of real pairs follow: images of the same name in two folders, or in one folder
with ``_real`` and ``_mean`` in their names; their truth is the difference of each pair. Both forms
draw the picture of docs/noise.md and fill its table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pages import DATA, DOCS, FIGURES, fill, markdown
from scenes import microscopy_scenes
from scipy import ndimage
from tqdm import tqdm

from normeq._support.tables import read_csv, save_figure, write_csv
from normeq.images import read
from normeq.images.folder import read_folder, to_unit
from normeq.noise import NoiseModel, estimate_noise, measure_blocks, poisson_gaussian
from normeq.noise.noise_figure import noise_figure
from normeq.noise.sampling import reader_of

Floats = NDArray[np.float64]

GAINS = (0.0, 0.5, 2.0)
READ_NOISES = (3.0, 8.0, 20.0)
#: Width of the Gaussian that blurs the noise, in pixels; 0 is white. The autocorrelation of
#: neighbours is 0, 0.26, 0.67 and 0.84; that of the real noise here is 0 to 0.68.
BLURS = (0.0, 0.5, 0.8, 1.2)
SIDE = 512
#: The bars: median and 95th percentile of the error of sigma at mid signal.
BARS = (0.05, 0.20)


def contents(photos: Path) -> Iterator[tuple[str, Floats]]:
    for photo in read_folder(photos, channels=1).images:
        yield "photographs", 255.0 * to_unit(photo).squeeze()[:SIDE, :SIDE].astype(np.float64)
    for scene in microscopy_scenes():
        yield "microscopy", scene


def blurred(noise: Floats, width: float) -> Floats:
    """Correlate noise without changing its variance."""
    if width == 0:
        return noise
    impulse = np.zeros((33, 33))
    impulse[16, 16] = 1.0
    norm = np.sqrt((ndimage.gaussian_filter(impulse, width) ** 2).sum())
    return ndimage.gaussian_filter(noise, width, mode="wrap") / norm


def noise_of(clean: Floats, gain: float, read_noise: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    if gain == 0:
        return read_noise * rng.standard_normal(clean.shape)
    return poisson_gaussian(clean, gain, read_noise, rng) - clean


def mid_signal(clean: Floats) -> float:
    return float(np.mean(np.quantile(clean, (0.01, 0.99))))


def lag_one(model: NoiseModel) -> float:
    rho = model.correlation.autocorrelation
    return 0.0 if len(rho) == 1 else (rho[0][1] + rho[1][0]) / 2


Combination = tuple[str, float, float, float]


def errors_on(numbered: tuple[int, tuple[str, Floats]]) -> list[tuple[Combination, float]]:
    """Return the error of sigma on one image under every noise of the grid."""
    number, (kind, clean) = numbered
    level = mid_signal(clean)
    found = []
    for gain, read_noise, width in product(GAINS, READ_NOISES, BLURS):
        noise = blurred(noise_of(clean, gain, read_noise, seed=number), width)
        truth = np.sqrt(gain * level + read_noise**2)
        error = float(estimate_noise(clean + noise).sigma(level)) / truth - 1.0
        found.append(((kind, gain, read_noise, width), error))
    return found


def synthetic(photos: Path, jobs: int | None) -> list[dict[str, Any]]:
    images = list(enumerate(contents(photos)))
    errors: dict[Combination, list[float]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for found in tqdm(pool.map(errors_on, images), total=len(images)):
            for combination, error in found:
                errors.setdefault(combination, []).append(error)
    rows = [
        {"set": kind, "gain": gain, "read noise": read_noise, "blur": width, **summary(found)}
        for (kind, gain, read_noise, width), found in errors.items()
    ]
    for name, widths in (
        ("the whole grid", BLURS),
        ("as correlated as real noise", BLURS[:-1]),
        ("blur 1.2", BLURS[-1:]),
    ):
        part = [error for key, found in errors.items() if key[-1] in widths for error in found]
        rows.append({"set": name, "gain": "", "read noise": "", "blur": "", **summary(part)})
    return rows


def summary(errors: list[float]) -> dict[str, Any]:
    size = np.abs(errors)
    return {
        "images": len(errors),
        "median error": f"{np.median(size):.3f}",
        "95th percentile": f"{np.quantile(size, 0.95):.3f}",
        "median signed error": f"{np.median(errors):+.3f}",
    }


def pairs_of(argument: str) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield the name and the two planes of each pair, channel by channel."""
    name, _, folders = argument.partition("=")
    noisy, _, clean = folders.partition(":")
    paths = sorted(Path(noisy).glob("*" if clean else "*_real*"))
    for path in paths:
        other = Path(clean) / path.name if clean else Path(str(path).replace("_real", "_mean"))
        left, right = (np.asarray(read(p), np.float64) for p in (path, other))
        if left.ndim == 2:
            left, right = left[..., None], right[..., None]
        for channel in range(left.shape[-1]):
            kind = path.stem.split("_")[0] if clean else ""
            yield f"{name} {kind}".strip(), left[..., channel], right[..., channel]


def real(argument: str) -> list[dict[str, Any]]:
    errors: dict[str, list[float]] = {}
    correlations: dict[str, list[float]] = {}
    for name, noisy, clean in pairs_of(argument):
        noise = noisy - clean - (noisy - clean).mean()
        model = estimate_noise(noisy)
        sigma = np.sqrt(model.variance(clean).mean())
        errors.setdefault(name, []).append(float(sigma / noise.std()) - 1.0)
        truth = np.mean(
            [np.mean(noise[1:] * noise[:-1]), np.mean(noise[:, 1:] * noise[:, :-1])]
        ) / np.mean(noise**2)
        correlations.setdefault(name, []).append(lag_one(model) - float(truth))
    return [
        {
            "set": name,
            "gain": "",
            "read noise": "",
            "blur": "",
            **summary(found),
            "lag-one error": f"{np.median(np.abs(correlations[name])):.3f}",
        }
        for name, found in errors.items()
    ]


def draw_example(path: Path) -> None:
    """Draw what `normeq noise --plot` shows for a scene with known noise."""
    clean = next(microscopy_scenes())
    noisy = clean + blurred(noise_of(clean, gain=2.0, read_noise=5.0, seed=0), 0.5)
    model = estimate_noise(noisy)
    blocks = measure_blocks(*reader_of(noisy), model.correlation)
    save_figure(path, lambda: noise_figure(model, blocks, "filaments"))


def fill_page(table: Path) -> None:
    """Write the sets of the table, without the single combinations, into the page."""
    rows = [row for row in read_csv(table) if not row["gain"]]
    columns = ("set", "images", "median error", "95th percentile", "median signed error")
    cells = [[row[column] for column in columns] for row in rows]
    fill(DOCS / "noise.md", "accuracy", markdown(columns, cells))


def measure(options: argparse.Namespace) -> None:
    rows = synthetic(options.photos, options.jobs)
    measured = rows[-3]  # the whole grid
    for argument in options.pairs:
        rows += real(argument)
    write_csv(options.out, [row | {"lag-one error": row.get("lag-one error", "")} for row in rows])
    for row in rows:
        print(*row.values(), sep="  ")
    median, high = float(measured["median error"]), float(measured["95th percentile"])
    met = median <= BARS[0] and high <= BARS[1]
    print(f"bars {BARS[0]:.0%} and {BARS[1]:.0%}: {'met' if met else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=Path, help="folder of photographs")
    parser.add_argument("--pairs", action="append", default=[], help="NAME=NOISY[:CLEAN]")
    parser.add_argument("--out", type=Path, default=DATA / "noise-accuracy.csv")
    parser.add_argument("--jobs", type=int, help="processes; one for each core without it")
    parser.add_argument("--page-only", action="store_true", help="only the page and its picture")
    options = parser.parse_args()
    if not options.page_only:
        if options.photos is None:
            parser.error("--photos is needed, except with --page-only")
        measure(options)
    draw_example(FIGURES / "noise.png")
    fill_page(options.out)


if __name__ == "__main__":
    main()
