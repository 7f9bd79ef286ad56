"""How close a trained network's twins are to it, and how soon training brings them back.

    python benchmarks/conversion.py --data FOLDER --test FOLDER

An ordinary U-Net with biases is trained for Gaussian noise of sigma 25; then each of its twins is
measured as it is and trained on, at a quarter of the rate. Writes
docs/data/conversion.csv and the table of docs/convert.md.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from pages import DATA, DOCS, fill, markdown
from torch import nn
from tqdm import trange

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.conversion.converter import TARGETS
from normeq.images.folder import read_folder
from normeq.training.data import Patches
from normeq.training.recipe import Data, Validation
from normeq.training.samples import SampleBatch
from normeq.training.validation_set import Condition, noisy_images

BATCH, RATE = 8, 2e-3
PATCHES = Data(patch=48, sigma=25.0)
TEST = Validation(crop=256)
CSV, PAGE = DATA / "conversion.csv", DOCS / "convert.md"
HEADER = ["", "further steps", "moved", "PSNR", "PSNR at 4·y - 100"]


def train(net: nn.Module, data: Patches, start: int, steps: int, rate: float) -> None:
    """Minimise the mean squared error, with a rate that falls to zero."""
    optimiser = torch.optim.Adam(net.parameters(), rate, betas=(0.9, 0.99))
    net.train()
    for step in trange(start, start + steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 + math.cos(math.pi * (step - start) / steps)) / 2
        batch = data.batch(step * BATCH, BATCH)
        loss = (net(batch.noisy) - batch.target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimiser.step()
    net.eval()


@torch.no_grad()
def psnr(net: nn.Module, tests: list[SampleBatch], gain: float = 1.0, offset: float = 0.0) -> float:
    """Mean PSNR over images that are brought to another gain and offset, and back."""
    scores = []
    for test in tests:
        out = (net(gain * test.noisy + offset) - offset) / gain
        scores.append(-10 * math.log10((out.clip(0, 1) - test.target).square().mean().item()))
    return sum(scores) / len(scores)


@torch.no_grad()
def distance(net: nn.Module, twin: nn.Module, tests: list[SampleBatch]) -> float:
    """How far outputs have moved: root mean square, in spreads of the original's."""
    moved = [(twin(test.noisy) - net(test.noisy)).square().mean() for test in tests]
    spread = [net(test.noisy).var() for test in tests]
    return float((sum(moved) / sum(spread)) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="training images")
    parser.add_argument("--test", type=Path, required=True, help="test images")
    parser.add_argument("--steps", type=int, default=2000, help="of the ordinary network")
    options = parser.parse_args()
    data = Patches(read_folder(options.data, 1, PATCHES.patch).images, PATCHES, seed=0)
    images = read_folder(options.test, 1).images
    tests = list(noisy_images(images, Condition(25.0), TEST, "gaussian", seed=0))
    torch.manual_seed(0)
    net = normeq.create("unet", "ordinary", widths=(16, 32), blocks=1)
    train(net, data, 0, options.steps, RATE)
    example = tests[0].noisy[..., :64, :64]

    def row(name: str, twin: nn.Module, trained: int) -> dict[str, str | int]:
        found: dict[str, str | int] = {
            "network": name,
            "steps": trained,
            "moved": f"{distance(net, twin, tests):.3f}",
            "psnr": f"{psnr(twin, tests):.2f}",
            "psnr_gain_4_offset_-100": f"{psnr(twin, tests, 4.0, -100.0):.2f}",
        }
        print(*found.values())
        return found

    rows = [row("ordinary", net, 0)]
    for target in TARGETS:
        for trained in (0, *(options.steps // part for part in (40, 10, 4, 1))):
            twin, _ = normeq.convert(net, target, example)
            if trained:
                train(twin, data, options.steps, trained, RATE / 4)
            rows.append(row(target, twin.eval(), trained))
    write_csv(CSV, rows)
    write_page()


def write_page() -> None:
    fill(PAGE, "measured", markdown(HEADER, [list(row.values()) for row in read_csv(CSV)]))


if __name__ == "__main__":
    main()
