"""PSNR against time: quality-time.csv and .png, classical-time.csv, and their tables.

    python benchmarks/quality_time.py --data SET12
    python benchmarks/quality_time.py --data SET12 --models bm3d,default

measures all classical methods and shipped models, or some of them, at sigma 25 with the noise of
``normeq evaluate``, in single precision. Seconds are those of one processor core, a megapixel. For
methods that match blocks it also measures where their time goes, on the first image.
"""

from __future__ import annotations

import argparse
import pstats
import time
from cProfile import Profile
from functools import partial
from pathlib import Path
from statistics import fmean

import torch
from matplotlib.figure import Figure
from pages import DATA, DOCS, FIGURES, fill, markdown
from tqdm import tqdm

from normeq._support.tables import read_csv, save_figure, write_csv
from normeq.classical import METHODS
from normeq.evaluation import ImageDenoiser, evaluate, image_denoiser
from normeq.images.folder import Folder, read_folder
from normeq.models import load, shipped

SIGMA = 25
QUALITY, TIMES = DATA / "quality-time.csv", DATA / "classical-time.csv"
PLOT = FIGURES / "quality-time.png"
PAGE = DOCS / "classical.md"
BLOCK_MATCHING = ("nlridge", "bm3d", "wnnm")
# The functions of normeq.classical.patch_matching, and the work they stand for.
PARTS = {"match": "matching", "gather": "gathering", "add": "aggregation"}
Rows = dict[str, list[str]]


def denoiser(name: str) -> ImageDenoiser:
    if name not in METHODS:
        return image_denoiser(name)[0]
    method = METHODS[name]
    return lambda noisy, sigma: method(noisy) if method.blind else method(noisy, sigma)


def measure(name: str, folder: Folder) -> list[str]:
    """Return the mean PSNR and the seconds per megapixel."""
    run = denoiser(name)
    run(folder.images[0][:, :16, :16] / 255, SIGMA / 255)  # what is loaded once does not count
    seconds = 0.0

    def timed(noisy, sigma):
        nonlocal seconds
        start = time.process_time()
        clean = run(noisy, sigma)
        seconds += time.process_time() - start
        return clean

    scores = list(tqdm(evaluate(timed, folder, [SIGMA]), total=len(folder.images), desc=name))
    megapixels = sum(image[0].size for image in folder.images) / 1e6
    return [f"{fmean(score.psnr for score in scores):.3f}", f"{seconds / megapixels:.3g}"]


def shares(name: str, folder: Folder) -> list[str]:
    """Return the seconds for the first image, and the share of each kind of work in them."""
    first = Folder(folder.images[:1], folder.names[:1])
    profile = Profile(time.process_time)
    run = denoiser(name)
    list(evaluate(lambda *noisy: profile.runcall(run, *noisy), first, [SIGMA]))
    spent = dict.fromkeys(PARTS, 0.0)
    statistics = pstats.Stats(profile)
    for (file, _, function), (_, _, _, cumulative, _) in statistics.stats.items():
        if Path(file).name == "patch_matching.py" and function in PARTS:
            spent[function] += cumulative
    total = statistics.total_tt
    filtering = total - sum(spent.values())
    return [f"{total:.3g}", *(f"{part / total:.2f}" for part in (*spent.values(), filtering))]


def update(path: Path, header: list[str], rows: Rows) -> Rows:
    """Replace rows of a table, keep the others, and return all of them."""
    known = {name: cells for name, *cells in (row.values() for row in read_csv(path))} | rows
    write_csv(
        path,
        [dict(zip(header, [name, *cells], strict=True)) for name, cells in known.items()],
    )
    return known


def fill_page(name: str, path: Path) -> None:
    """Put a CSV file into the guide as a table."""
    rows = read_csv(path)
    cells = [[f"`{name}`", *figures] for name, *figures in (row.values() for row in rows)]
    fill(PAGE, name, markdown(list(rows[0]), cells))


def draw(rows: Rows) -> Figure:
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for label, color, names in (
        ("classical", "tab:gray", [name for name in rows if name in METHODS]),
        ("normeq networks", "tab:blue", [name for name in rows if name not in METHODS]),
    ):
        points = [(float(rows[name][1]), float(rows[name][0])) for name in names]
        axes.scatter(*zip(*points, strict=True) if points else ([], []), color=color, label=label)
        # Below and above in turn, so that the names of neighbours do not meet.
        for rank, (point, name) in enumerate(sorted(zip(points, names, strict=True))):
            side, shift = ("bottom", 6) if rank % 2 else ("top", -6)
            place = {"xytext": (0, shift), "textcoords": "offset points"}
            axes.annotate(name, point, ha="center", va=side, fontsize=9, **place)
    axes.set(xscale="log", xlabel="seconds per megapixel (one core)", ylabel="PSNR (dB)")
    axes.set_title(f"Set12, Gaussian noise of sigma {SIGMA}", fontsize=10)
    axes.margins(x=0.1, y=0.15)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of Set12")
    parser.add_argument("--models", help="names, with commas; all if left out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = read_folder(options.data, channels=1)
    networks = [name for name in shipped() if load(name).channels == 1]
    names = options.models.split(",") if options.models else [*METHODS, *networks]
    for name in names:
        if name in BLOCK_MATCHING:
            header = ["method", "seconds", *PARTS.values(), "filtering"]
            update(TIMES, header, {name: shares(name, folder)})
        header = ["model", "psnr", "seconds_per_megapixel"]
        rows = update(QUALITY, header, {name: measure(name, folder)})
        save_figure(PLOT, partial(draw, rows))
        fill_page("quality", QUALITY)
        fill_page("times", TIMES)


if __name__ == "__main__":
    main()
