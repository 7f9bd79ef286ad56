"""How much of an image a network should see: docs/data/extents.csv and its table.

    python benchmarks/extents.py BSD32 --weights now=default --weights later=FILE

The same noisy squares of 192 pixels are denoised whole and in pieces. A network that was trained on
small patches for too long becomes better on small pieces and worse on whole images.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from pages import DATA, DOCS, fill, table
from torch import Tensor

import normeq
from normeq._support.tables import write_csv
from normeq.images.folder import read_folder, to_unit
from normeq.training.validation_set import centre

CSV = DATA / "extents.csv"
SIDE = 192
PIECES = (64, 96, 192)
SIGMAS = (15, 25, 50)


def squares(folder: Path, channels: int = 1) -> Tensor:
    """Return the centre of each image, ``(N, channels, SIDE, SIDE)``, with white at 1."""
    images = read_folder(folder, channels, SIDE).images
    return torch.from_numpy(np.stack([to_unit(centre(image, SIDE)) for image in images]))


def with_noise(clean: Tensor, sigma: float) -> Tensor:
    """Add white noise, the same whenever it is asked for, of a level on the scale up to 255."""
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    return clean + sigma / 255 * noise


def mean_psnr(results: Tensor, truth: Tensor) -> float:
    """Return the mean over images of their PSNR, nothing clipped."""
    errors = (results - truth).square().flatten(1).mean(1)
    return float(-10 * errors.log10().mean())


def in_pieces(images: Tensor, side: int) -> Tensor:
    """Cut each image into a grid of squares, one after the other along the first axis."""
    return images.unfold(2, side, side).unfold(3, side, side).reshape(-1, 1, side, side)


@torch.inference_mode()
def quality(net: torch.nn.Module, clean: Tensor, sigma: float, side: int) -> float:
    """Return the mean PSNR of the squares, each denoised in pieces."""
    noisy = in_pieces(with_noise(clean, sigma), side)
    per_image = (SIDE // side) ** 2
    output = torch.cat([net(part, sigma / 255) for part in noisy.split(per_image)])
    images = len(clean)
    return mean_psnr(output.reshape(images, -1), in_pieces(clean, side).reshape(images, -1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, help="folder of validation images")
    parser.add_argument("--weights", action="append", required=True, metavar="LABEL=WEIGHTS")
    given = parser.parse_args()
    clean = squares(given.images)
    rows = []
    for label, weights in (item.split("=", 1) for item in given.weights):
        net = normeq.fold(normeq.load(weights))
        for side in PIECES:
            scores = {f"sigma {s}": f"{quality(net, clean, s, side):.2f}" for s in SIGMAS}
            rows.append({"weights": label, "side of a piece": str(side), **scores})
    write_csv(CSV, rows)
    fill(DOCS / "search.md", "extents", table(CSV))


if __name__ == "__main__":
    main()
