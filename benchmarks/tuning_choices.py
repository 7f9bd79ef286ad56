"""What a loss, a rate and a choice of layers gain when a network is tuned on one noisy image.

    python benchmarks/tuning_choices.py --bsd32 FOLDER [--only NAME ...] [--images NAME ...]

Writes docs/data/tuning-choices.csv and its table in docs/adapt.md. The images are crops of
256 x 256 pixels with white noise of sigma 25, which is known here: a texture that comes with
scikit-image, and photographs that are in no test set. Nothing is held out and nothing is refused,
so that the rows show what tuning itself does. Rows that the file contains are not computed again.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from pages import DATA, DOCS, fill, markdown
from skimage import data
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad
from torch.nn.utils import parametrize

import normeq
from normeq import classical
from normeq._support.tables import read_csv, write_csv
from normeq.images import read
from normeq.metrics import psnr
from normeq.nn import fuse

CSV = DATA / "tuning-choices.csv"
SIGMA = 25.0
SIDE, BATCH, WARMUP, MEMORY = 96, 4, 10, 0.9
# Share of new noise in the input of the recorrupted loss.
STRENGTH = 0.5
# The level of that input.
RECORRUPTED = SIGMA * math.hypot(1, STRENGTH)
# Step of Stein's estimate, as a share of sigma.
STEP = 0.1
RANK = 4
# Pixels over which it is decided what the teacher is made of.
NEIGHBOURHOOD = 63
# By image, the seed of its noise.
IMAGES = {"brick": 0, "86016": 2, "86000": 3}


@dataclass(frozen=True)
class Choice:
    """How a network is tuned."""

    loss: str = "recorrupted"
    layers: str = "all"
    rate: float = 2e-4
    steps: int = 100
    #: Whether every gradient is given the same length; otherwise only long ones are shortened.
    same_length: bool = False


CHOICES = {
    "recorrupted": Choice(),
    "Stein": Choice("stein", steps=50),
    "Stein, rate 5e-4": Choice("stein", rate=5e-4, steps=50),
    "teacher, noise of the image": Choice("transductive"),
    "teacher and Stein": Choice("stein and teacher", steps=66),
    "teacher and Stein, rate 5e-4": Choice("stein and teacher", rate=5e-4, steps=66),
    "same length, recorrupted, rate 5e-4": Choice(rate=5e-4, same_length=True),
    "same length, Stein": Choice("stein", steps=50, same_length=True),
    "same length, teacher, rate 5e-4": Choice("teacher", rate=5e-4, same_length=True),
    "same length, teacher and recorrupted, rate 5e-4": Choice("both", rate=5e-4, same_length=True),
    "recorrupted, last scale": Choice(layers="last scale"),
    "recorrupted, rank 4": Choice(layers="rank 4", rate=1e-3),
}


def image(name: str, folder: Path) -> Tensor:
    """Return a crop, ``(1, 1, 256, 256)``."""
    if name == "brick":
        gray, top, left = data.brick(), 0, 0
    else:
        gray = read(folder / f"{name}.jpg") @ [0.299, 0.587, 0.114]
        top, left = (extent // 2 - 128 for extent in gray.shape)
    return torch.from_numpy(gray[top : top + 256, left : left + 256].astype("float32"))[None, None]


# Symmetries of the square: quarter turns, then a flip ------------------------------------------


def turned(image: Tensor, symmetry: int) -> Tensor:
    """Apply a symmetry."""
    image = torch.rot90(image, symmetry // 2, (-2, -1))
    return image.flip(-1) if symmetry % 2 else image


def turned_back(image: Tensor, symmetry: int) -> Tensor:
    """Undo a symmetry."""
    image = image.flip(-1) if symmetry % 2 else image
    return torch.rot90(image, -(symmetry // 2), (-2, -1))


def ensemble(net: nn.Module, noisy: Tensor) -> Tensor:
    """Return the mean over symmetries."""
    outputs = [turned_back(net(turned(noisy, each), SIGMA), each) for each in range(8)]
    return torch.stack(outputs).mean(0)


# The teacher -----------------------------------------------------------------------------------


def teacher(net: nn.Module, noisy: Tensor, generator: torch.Generator) -> Tensor:
    """Return the mean over symmetries, moved towards BM3D where Stein's estimate advises it."""

    def both(image: Tensor) -> tuple[Tensor, Tensor]:
        mean = image.mean()
        own = ensemble(net, image)
        return own, classical.bm3d(image - mean, SIGMA) + mean - own

    own, away = both(noisy)
    probe = signs(noisy.shape, generator)
    moved = both(noisy + STEP * SIGMA * probe)[1]
    slope = SIGMA * probe * (moved - away) / STEP
    advised = nearby((noisy - own) * away - slope)
    return own + (advised / nearby(away.square())).clamp(0, 1) * away


def nearby(terms: Tensor) -> Tensor:
    """Return means over neighbourhoods."""
    for _ in range(2):
        half = NEIGHBOURHOOD // 4
        terms = avg_pool2d(pad(terms, (half,) * 4, mode="reflect"), 2 * half + 1, 1)
    return terms


def signs(shape: torch.Size, generator: torch.Generator) -> Tensor:
    """Draw a probe."""
    return torch.randint(0, 2, shape, generator=generator) * 2.0 - 1


# Losses: what a network is given, and how far its output is from what it should be -------------

Loss = Callable[[nn.Module, Tensor, Tensor, torch.Generator], Tensor]


def recorrupted(net: nn.Module, noisy: Tensor, _: Tensor, generator: torch.Generator) -> Tensor:
    noise = SIGMA * torch.randn(noisy.shape, generator=generator)
    given, wanted = noisy + STRENGTH * noise, noisy - noise / STRENGTH
    return (net(given, RECORRUPTED) - wanted).square().mean()


def stein(net: nn.Module, noisy: Tensor, _: Tensor, generator: torch.Generator) -> Tensor:
    probe = signs(noisy.shape, generator)
    first, second = net(torch.cat([noisy, noisy + STEP * SIGMA * probe]), SIGMA).float().chunk(2)
    slope = SIGMA * probe * (second - first) / STEP
    return ((first - noisy).square() + 2 * slope).mean()


def taught(net: nn.Module, _: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
    noise = SIGMA * torch.randn(target.shape, generator=generator)
    return (net(target + noise, SIGMA) - target).square().mean()


def transductive(net: nn.Module, noisy: Tensor, target: Tensor, _: torch.Generator) -> Tensor:
    return (net(noisy, SIGMA) - target).square().mean()


def both(net: nn.Module, noisy: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
    """Half the tiles for each of two losses, so that a step takes the same time."""
    half = len(noisy) // 2
    noise = SIGMA * torch.randn(noisy.shape, generator=generator)
    given = torch.cat([noisy[:half] + STRENGTH * noise[:half], target[half:] + noise[half:]])
    wanted = torch.cat([noisy[:half] - noise[:half] / STRENGTH, target[half:]])
    levels = torch.tensor([RECORRUPTED] * half + [SIGMA] * (len(noisy) - half))
    return (net(given, levels) - wanted).square().mean()


def stein_and_taught(
    net: nn.Module, noisy: Tensor, target: Tensor, generator: torch.Generator
) -> Tensor:
    """Half the tiles for each of two losses."""
    half = len(noisy) // 2
    probe = signs(noisy[:half].shape, generator)
    noise = SIGMA * torch.randn(target[half:].shape, generator=generator)
    given = [noisy[:half], noisy[:half] + STEP * SIGMA * probe, target[half:] + noise]
    first, second, third = net(torch.cat(given), SIGMA).float().chunk(3)
    slope = SIGMA * probe * (second - first) / STEP
    errors = (first - noisy[:half]).square() + 2 * slope + (third - target[half:]).square()
    return errors.mean() / 2


LOSSES: dict[str, Loss] = {
    "recorrupted": recorrupted,
    "stein": stein,
    "teacher": taught,
    "transductive": transductive,
    "both": both,
    "stein and teacher": stein_and_taught,
}


# Layers ----------------------------------------------------------------------------------------


class LowRank(nn.Module):
    """A kernel plus a product of two thin matrices, which starts at zero."""

    def __init__(self, kernel: Tensor) -> None:
        super().__init__()
        rows, columns = len(kernel), kernel[0].numel()
        self.left = nn.Parameter(torch.zeros(rows, RANK))
        self.right = nn.Parameter(torch.randn(RANK, columns) / math.sqrt(columns))

    def forward(self, kernel: Tensor) -> Tensor:
        """Return the kernel that is used."""
        return kernel + (self.left @ self.right).view_as(kernel)


def free(net: nn.Module, layers: str) -> list[nn.Parameter]:
    """Return the parameters that are tuned, and freeze the others."""
    net.requires_grad_(layers == "all")
    if layers == "last scale":
        net.up[-1].requires_grad_(True)
        net.tail.requires_grad_(True)
    if layers == f"rank {RANK}":
        torch.manual_seed(0)
        for layer in [each for each in net.modules() if type(each) is nn.Conv2d]:
            if not parametrize.is_parametrized(layer):
                parametrize.register_parametrization(layer, "weight", LowRank(layer.weight))
                layer.parametrizations.weight.original.requires_grad_(False)
    return [each for each in net.parameters() if each.requires_grad]


# A run -----------------------------------------------------------------------------------------


def tuned(start: nn.Module, noisy: Tensor, target: Tensor, choice: Choice) -> nn.Module:
    """Tune a copy of a network, and return the average of its last weights."""
    net = copy.deepcopy(start).train()
    parameters = free(net, choice.layers)
    average = [each.detach().clone() for each in parameters]
    fast = fuse(net)
    optimizer = torch.optim.Adam(parameters, choice.rate, betas=(0.9, 0.99))
    generator = torch.Generator().manual_seed(0)
    for step in range(choice.steps):
        fall = 0.5 * (1 + math.cos(math.pi * step / choice.steps))
        for group in optimizer.param_groups:
            group["lr"] = choice.rate * min(1.0, (step + 1) / WARMUP) * fall
        tiles = [draw(noisy, target, generator) for _ in range(BATCH)]
        given, wanted = (torch.cat(each) for each in zip(*tiles, strict=True))
        with torch.autocast("cpu", torch.bfloat16):
            loss = LOSSES[choice.loss](fast, given, wanted, generator)
        # In units of the noise, as in the program, long gradients are shortened to 1.
        (loss / SIGMA**2).backward()
        nn.utils.clip_grad_norm_(parameters, SIGMA**-2 if choice.same_length else 1.0)
        optimizer.step()
        optimizer.zero_grad()
        memory = min(MEMORY, (step + 1) / (step + 2))
        with torch.no_grad():
            for kept, new in zip(average, parameters, strict=True):
                kept.lerp_(new, 1 - memory)
    with torch.no_grad():
        for kept, new in zip(average, parameters, strict=True):
            new.copy_(kept)
    return net.eval().requires_grad_(False)


def draw(noisy: Tensor, target: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Cut the same random tile out of two images."""
    row, column = (
        int(torch.randint(0, extent - SIDE + 1, (), generator=generator))
        for extent in noisy.shape[-2:]
    )
    symmetry = int(torch.randint(0, 8, (), generator=generator))
    inside = (..., slice(row, row + SIDE), slice(column, column + SIDE))
    return turned(noisy[inside], symmetry), turned(target[inside], symmetry)


def halfway(start: nn.Module, net: nn.Module) -> nn.Module:
    """Return the network between two."""
    between = copy.deepcopy(start)
    with torch.no_grad():
        for new, other in zip(between.parameters(), net.parameters(), strict=True):
            new.lerp_(other, 0.5)
    return between


@torch.no_grad()
def score(net: nn.Module, noisy: Tensor, clean: Tensor) -> float:
    return psnr(fuse(net)(noisy, SIGMA).numpy() / 255, clean.numpy() / 255)


def measure(
    start: nn.Module, choice: Choice, noisy: Tensor, clean: Tensor, target: Tensor
) -> dict[str, Any]:
    """Return the gains of a choice and the seconds of one core that it takes."""
    cpu = time.process_time()
    net = tuned(start, noisy, target, choice)
    cpu = time.process_time() - cpu
    plain = score(start, noisy, clean)
    half = "" if choice.layers == f"rank {RANK}" else score(halfway(start, net), noisy, clean)
    return {
        "plain": f"{plain:.3f}",
        "gain": f"{score(net, noisy, clean) - plain:.3f}",
        "gain_halfway": half and f"{half - plain:.3f}",
        "cpu_seconds": f"{cpu:.1f}",
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the gain of each choice on each image, and the seconds it takes."""
    names = list(dict.fromkeys(row["image"] for row in rows))
    lines = []
    for choice in CHOICES:
        gains = {row["image"]: row["gain"] for row in rows if row["choice"] == choice}
        seconds = [float(row["cpu_seconds"]) for row in rows if row["choice"] == choice]
        if gains:
            line = [f"{float(gains[name]):+.2f}" if name in gains else "" for name in names]
            lines.append([choice, *line, f"{fmean(seconds):.0f}"])
    return markdown(["choice", *names, "CPU seconds"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bsd32", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(CHOICES))
    parser.add_argument("--images", nargs="*", default=list(IMAGES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    start = normeq.load("default").eval().requires_grad_(False)
    rows = read_csv(CSV) if CSV.exists() else []
    for name in options.images:
        clean = image(name, options.bsd32)
        generator = torch.Generator().manual_seed(IMAGES[name])
        noisy = clean + SIGMA * torch.randn(clean.shape, generator=generator)
        target = None
        for choice in options.only:
            if any((row["image"], row["choice"]) == (name, choice) for row in rows):
                continue
            if target is None:
                with torch.no_grad():
                    target = teacher(fuse(start), noisy, generator)
                plain = score(start, noisy, clean)
                gained = psnr(target.numpy() / 255, clean.numpy() / 255) - plain
                print(name, f"{plain:.3f}", "teacher", f"{gained:.3f}", flush=True)
            row = {"image": name, "choice": choice}
            row |= measure(start, CHOICES[choice], noisy, clean, target)
            print(row, flush=True)
            rows.append(row)
            write_csv(CSV, rows)
    fill(DOCS / "adapt.md", "choices", table(rows))


if __name__ == "__main__":
    main()
