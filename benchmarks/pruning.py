"""Which residual blocks of the default network matter: docs/data/pruning.csv and its table.

    python benchmarks/pruning.py BSD32
    python benchmarks/pruning.py PHOTOS --blocks 1,0,1,1,4 --save FILE [--weights WEIGHTS]

Block by block, the one that is missed least is taken out, until none is left; nothing is trained.
The PSNR is that of white noise of sigma 25 on squares of the validation images. This shows
what the trained network relies on, not what one needs that is trained without these blocks.
With `--blocks`, each stage keeps that many blocks, and the smaller network is saved, so that
training can start from it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import torch
from extents import mean_psnr, squares, with_noise
from pages import DATA, DOCS, fill, table
from torch import Tensor, nn

import normeq
from normeq._support.tables import write_csv
from normeq.models.building_blocks import ResidualBlock
from normeq.models.unet import UNet, blocks_by_stage

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
    """Wrap every residual block, and return the wrappers with the stage that they belong to."""
    found: list[tuple[str, Switched]] = []
    for name in PLACES:
        stage = net.get_submodule(name)
        for key, block in list(stage.named_children()):
            if isinstance(block, ResidualBlock):
                found.append((name, Switched(block)))
                stage.add_module(key, found[-1][1])
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


def remove_all(
    net: nn.Module, kept: dict[str, int], noisy: Tensor, clean: Tensor
) -> list[dict[str, str]]:
    """Take blocks out until each stage has as many as it keeps; return a row for each."""
    inside = switched(net)
    rows = [{"blocks left": str(len(inside)), "taken out": "", "PSNR (dB)": ""}]
    rows[0]["PSNR (dB)"] = f"{quality(net, noisy, clean):.3f}"
    while True:
        left = Counter(name for name, _ in inside)
        spare = [entry for entry in inside if left[entry[0]] > kept[entry[0]]]
        if not spare:
            return rows
        psnr, name, block = least_missed(net, spare, noisy, clean)
        block.out = True
        inside = [entry for entry in inside if entry[1] is not block]
        row = {"blocks left": str(len(inside)), "taken out": PLACES[name]}
        rows.append(row | {"PSNR (dB)": f"{psnr:.3f}"})
        print(rows[-1], flush=True)


def smaller(net: UNet, kept: dict[str, int]) -> UNet:
    """Return a network of the blocks that are left."""
    for name in PLACES:
        stage = net.get_submodule(name)
        layers = [
            each.block if isinstance(each, Switched) else each
            for each in stage.children()
            if not (isinstance(each, Switched) and each.out)
        ]
        net.set_submodule(name, nn.Sequential(*layers))
    result = normeq.create(net.architecture, **{**net.config, "blocks": list(kept.values())})
    assert isinstance(result, UNet)
    result.load_state_dict(net.state_dict())
    return result


def wanted_blocks(text: str, net: UNet, parser: argparse.ArgumentParser) -> list[int]:
    """Return the numbers of blocks that were asked for, none larger than the network has."""
    present = blocks_by_stage(net.config["blocks"], len(net.config["widths"]))
    numbers = text.split(",")
    if len(numbers) != len(present) or not all(
        each.isdecimal() and int(each) <= most for each, most in zip(numbers, present, strict=True)
    ):
        parser.error(f"--blocks is {text}: use numbers up to {','.join(map(str, present))}")
    return [int(each) for each in numbers]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, help="folder of validation images")
    parser.add_argument("--blocks", help="how many blocks each stage keeps: 1,0,1,1,4")
    parser.add_argument("--save", type=Path, help="where the smaller network goes")
    parser.add_argument("--weights", default="default", help="the network to take blocks from")
    given = parser.parse_args()
    if (given.blocks is None) != (given.save is None):
        parser.error("--blocks and --save go together")
    if given.save is None and given.weights != "default":
        parser.error("the table is about default: with --weights, pass --blocks and --save")
    net = normeq.load(given.weights).eval()
    if not isinstance(net, UNet) or len(net.config["widths"]) != 3:
        parser.error(f"{given.weights} is not a U-Net of three scales")
    kept = dict.fromkeys(PLACES, 0)
    if given.blocks is not None:
        kept = dict(zip(PLACES, wanted_blocks(given.blocks, net, parser), strict=True))
    # Every other image: there are hundreds of networks to measure.
    clean = squares(given.images)[::2, :, :SIDE, :SIDE]
    noisy = with_noise(clean, SIGMA)
    if given.save is None:
        write_csv(CSV, remove_all(net, kept, noisy, clean))
        fill(PAGE, "pruning", table(CSV))
        return
    remove_all(net, kept, noisy, clean)
    card = {**net.card, "pruned": f"of the blocks of each stage, {given.blocks} are left"}
    normeq.save(smaller(net, kept), given.save, card)


if __name__ == "__main__":
    main()
