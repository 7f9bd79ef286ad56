"""The scores in the README, written again from models.csv and real-noise.csv.

python benchmarks/models.py --test Set12=FOLDER --test BSD68=FOLDER --color-test CBSD68=FOLDER
python benchmarks/real_noise.py --fmd FOLDER --cc15 FOLDER
python benchmarks/summary.py
"""

from __future__ import annotations

from models import CSV, ESTIMATED, LEVELS, PUBLISHED, REAL_NOISE
from pages import fill, markdown
from speed import README

from normeq._support.tables import read_csv

# White noise: the network that `normeq.denoise` chooses, and the BM3D to compare it with.
WHITE = {
    "Set12": ("default", "BM3D"),
    "BSD68": ("default", "BM3D"),
    "CBSD68": ("default-color", "CBM3D"),
}
# Real noise, by the images as benchmarks/real_noise.py calls them; its methods are the columns.
REAL = {"FMD, all": "FMD: microscopes", "CC15": "CC15: cameras"}
METHODS = ("noisy", "BM3D with VST", "default, auto")


def white_noise() -> list[list[str]]:
    """Return a line for each test set: noisy, BM3D, ours and FFDNet."""
    ours = {
        (row["model"], row["test_set"], row["sigma"]): row["psnr"]
        for row in read_csv(CSV)
        if row["told"] == ESTIMATED
    }
    lines = []
    for test, (model, bm3d) in WHITE.items():
        measured = " / ".join(ours[model, test, level] for level in LEVELS)
        published = [
            " / ".join(f"{psnr:.2f}" for psnr in PUBLISHED[method, test])
            for method in (bm3d, "FFDNet")
        ]
        title = f"{test}, white noise of sigma {', '.join(LEVELS[:-1])} and {LEVELS[-1]}"
        lines.append([title, "", published[0], measured, published[1]])
    return lines


def real_noise() -> list[list[str]]:
    """Return a line for each set of real pairs, in the same columns."""
    found = {(row["images"], row["method"]): row["psnr"] for row in read_csv(REAL_NOISE)}
    return [
        [title, *(found[images, method] for method in METHODS), ""]
        for images, title in REAL.items()
    ]


def main() -> None:
    header = ["images", "noisy", "BM3D", "normeq", "FFDNet"]
    fill(README, "scores", markdown(header, [*white_noise(), *real_noise()]))


if __name__ == "__main__":
    main()
