"""Which residual blocks of the default network matter: docs/data/pruning.csv and its table.

    python benchmarks/pruning.py BSD32

Block by block, the one that is missed least is taken out, until none is left; nothing is trained.
The PSNR is that of white noise of sigma 25 on squares of the validation images. This shows
what the trained network relies on, not what one needs that is trained without these blocks.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from extents import mean_psnr, squares, with_noise
from pages import DATA, DOCS, fill, table
from torch import Tensor, nn

import normeq
from normeq._support.tables import write_csv
from normeq.models.building_blocks import ResidualBlock

CSV, PAGE = DATA / "pruning.csv", DOCS / "search.md"
SIDE, SIGMA = 128, 25
# What the parts of a network of three scales are called in the table.
PLACES = {
    "down.0": "fine, down",
    "down.1": "middle, down",
    "body": "coarse",
    "up.0": "middle, up",
    "up.1": "fine, up",
}


class Switched(nn.Module):
    """A block that can be taken out: then it returns its input."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block
        self.out = False

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x if self.out else self.block(x)
        return result


def switched(net: nn.Module) -> list[tuple[str, Switched]]:
    """Wrap every residual block, and return the wrappers with the part that they belong to."""
    found: list[tuple[str, Switched]] = []
    for name in PLACES:
        part = net.get_submodule(name)
        for key, block in list(part.named_children()):
            if isinstance(block, ResidualBlock):
                found.append((name, Switched(block)))
                part.add_module(key, found[-1][1])
    return found


@torch.inference_mode()
def quality(net: nn.Module, noisy: Tensor, clean: Tensor) -> float:
    """Return the mean PSNR."""
    return mean_psnr(net(noisy, SIGMA / 255), clean)


def least_missed(
    net: nn.Module, inside: list[tuple[str, Switched]], noisy: Tensor, clean: Tensor
) -> tuple[float, str, Switched]:
    """Return the block without which the quality is best, and that quality."""
    found = []
    for name, block in inside:
        block.out = True
        found.append((quality(net, noisy, clean), name, block))
        block.out = False
    return max(found, key=lambda entry: entry[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, help="folder of validation images")
    given = parser.parse_args()
    net = normeq.load("default").eval()
    # Every other image: there are hundreds of networks to measure.
    clean = squares(given.images)[::2, :, :SIDE, :SIDE]
    noisy = with_noise(clean, SIGMA)
    inside = switched(net)
    rows = [{"blocks left": str(len(inside)), "taken out": "", "PSNR (dB)": ""}]
    rows[0]["PSNR (dB)"] = f"{quality(net, noisy, clean):.3f}"
    while inside:
        psnr, name, block = least_missed(net, inside, noisy, clean)
        block.out = True
        inside = [entry for entry in inside if entry[1] is not block]
        row = {"blocks left": str(len(inside)), "taken out": PLACES[name]}
        rows.append(row | {"PSNR (dB)": f"{psnr:.3f}"})
        print(rows[-1], flush=True)
    write_csv(CSV, rows)
    fill(PAGE, "pruning", table(CSV))


if __name__ == "__main__":
    main()
