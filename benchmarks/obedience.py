"""Whether networks remove as much noise as they are told: docs/data/obedience.csv and its table.

    python benchmarks/obedience.py BSD32
    python benchmarks/obedience.py BSD32 --only default          # keeps the rows of the others
    python benchmarks/obedience.py BSD32 --weights LABEL=FILE    # prints the rows of other weights

Squares of 192 pixels with white noise are denoised by every shipped network, which is told
multiples of the true level. The tests in tests/models/test_obedience.py measure the same on
photographs that come with scikit-image.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import torch
from extents import mean_psnr, squares, with_noise
from pages import DATA, DOCS, fill, table
from torch import Tensor

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.models import shipped

CSV, PAGE = DATA / "obedience.csv", DOCS / "models.md"
SIGMAS = (10, 25, 50)
FACTORS = (0.25, 0.5, 0.71, 0.84, 1.0, 1.19, 1.41, 2.0, 4.0)
# Small errors of the level, which should do little harm.
SLIPS = (0.9, 1.1)


@torch.inference_mode()
def outputs(net: torch.nn.Module, noisy: Tensor, sigma: float) -> dict[float, Tensor]:
    """Return what a network makes of noisy images for every multiple of the level."""
    return {
        factor: torch.cat([net(image, factor * sigma) for image in noisy.split(1)])
        for factor in (*FACTORS, *SLIPS)
    }


def row(name: str, net: torch.nn.Module, clean: Tensor, sigma: float) -> dict[str, str]:
    """Return how a network obeys at one level."""
    noisy = with_noise(clean, sigma)
    found = outputs(net, noisy, sigma / 255)
    removed = [float((noisy - found[factor]).std()) for factor in FACTORS]
    quality = {factor: mean_psnr(each, clean) for factor, each in found.items()}
    harm = quality[1.0] - min(quality[slip] for slip in SLIPS)
    return {
        "model": f"`{name}`",
        "sigma": f"{sigma:g}",
        "removed (in sigma)": " / ".join(f"{255 * each / sigma:.2f}" for each in removed),
        "grows": "yes" if all(less < more for less, more in pairwise(removed)) else "no",
        "half and exact differ by": f"{distance(found, 0.5, 1.0, sigma):.2f}",
        "exact and twice": f"{distance(found, 1.0, 2.0, sigma):.2f}",
        "best told": f"{max(FACTORS, key=lambda factor: quality[factor]):g}",
        "lost by 10 % (dB)": f"{harm:.2f}",
    }


def distance(found: dict[float, Tensor], one: float, other: float, sigma: float) -> float:
    """Return the root mean square difference of two results, in units of sigma."""
    return float((found[one] - found[other]).square().mean().sqrt()) * 255 / sigma


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, help="folder of validation images")
    parser.add_argument("--only", action="append", metavar="MODEL", help="measure these alone")
    parser.add_argument("--weights", action="append", default=[], metavar="LABEL=WEIGHTS")
    given = parser.parse_args()
    others = dict(item.split("=", 1) for item in given.weights)
    rows = []
    for name, weights in (others or {name: name for name in given.only or shipped()}).items():
        net = normeq.load(weights)
        clean, fast = squares(given.images, net.channels), normeq.fold(net)
        for sigma in SIGMAS:
            rows.append(row(name, fast, clean, sigma))
            print(rows[-1], flush=True)
    if not others:
        measured = {row["model"] for row in rows}
        rows += [row for row in read_csv(CSV) if row["model"] not in measured]
        write_csv(CSV, sorted(rows, key=lambda row: row["model"].strip("`")))
        fill(PAGE, "obedience", table(CSV))


if __name__ == "__main__":
    main()
