"""Which network and training denoise best after equal time or steps: choices.csv and its table.

    python benchmarks/choices.py --data PHOTOS --validation BSD32 --runs runs/choices --seconds 3600
    python benchmarks/choices.py ... --steps 4000 --only scales --seed 1
    python benchmarks/choices.py ... --steps 750 --only levels --base default --init WEIGHTS

Every choice is the base recipe with some fields replaced, trained in a folder of its own below
`--runs`. A search that was interrupted goes on where it was: finished choices are in the CSV, and
an unfinished run continues from its checkpoint. Choices are judged on the validation set alone.
Short runs favour narrow networks and high rates: compare only rows of equal time, or equal steps.
With `--init`, runs start from trained weights, at a rate that suits them: what differs then is what
differs at the end of a long training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

import searched_networks  # noqa: F401, which registers them
import torch
from accelerate import Accelerator
from pages import DATA, DOCS, fill, markdown

from normeq._support.allocator import keep_freed
from normeq._support.tables import read_csv, write_csv
from normeq.bench.arithmetic import multiply_adds
from normeq.images.folder import read_folder
from normeq.training import load_recipe, train
from normeq.training.data import Patches
from normeq.training.initial import new_network
from normeq.training.log import read_table
from normeq.training.recipe import Recipe
from normeq.training.state import State

CSV = DATA / "choices.csv"
KEY = ("base", "start", "data", "topic", "choice", "budget", "seed")
BASE = "default-white"
RANDOM = "random weights"
# What suits weights that are trained already.
GENTLE = ["optimization.learning_rate=1.5e-4", "optimization.ema=0.99"]
# Each optimiser at the rate that suits it: at 2e-3, Adam diverges in the deep network.
ADAM = ["optimization.optimizer=adam", "optimization.learning_rate=5e-4"]


def _photographs(**fields: float) -> list[str]:
    return [f"data.{name}={value}" for name, value in fields.items()]


#: By topic: what is changed, and the fields of the recipe that change it.
CHOICES: dict[str, dict[str, list[str]]] = {
    "base": {"as it is": []},
    "scales": {
        "widths 48, 96, 192, 2 blocks": ["network.size={widths=[48,96,192], blocks=2, sort=true}"],
        "widths 72, 72, 72, 2 blocks": ["network.size={widths=[72,72,72], blocks=2, sort=true}"],
        "widths 56, 64, 96, 3 blocks": ["network.size={widths=[56,64,96], blocks=3, sort=true}"],
        "widths 48, 56, 96, 4 blocks": ["network.size={widths=[48,56,96], blocks=4, sort=true}"],
        "widths 52, 72, 4 blocks": ["network.size={widths=[52,72], blocks=4, sort=true}"],
        "widths 44, 52, 64, 5 blocks": ["network.size={widths=[44,52,64], blocks=5, sort=true}"],
        "widths 40, 48, 56, 6 blocks": ["network.size={widths=[40,48,56], blocks=6, sort=true}"],
        "widths 48, 48, 56, 64, 4 blocks": [
            "network.size={widths=[48,48,56,64], blocks=4, sort=true}"
        ],
        "most blocks at the fine scale": ["network.size.blocks=[5,1,1,2,5]"],
        "half the cost": ["network.size={widths=[32,40,48], blocks=4, sort=true}"],
        "half the cost, most blocks at the fine scale": ["network.size.blocks=[1,0,1,1,4]"],
    },
    "blocks": {
        "depthwise kernels and gates": [
            "network.architecture=unet-gated",
            "network.size={widths=[64,72,96], blocks=4, sort=true}",
        ],
        "attention over channels": ["network.architecture=unet-attention"],
    },
    "form": {
        "ReLU": ["network.size.sort=false"],
        "affine form": ["network.variant=norm-equiv"],
        "wrapped form": ["network.variant=norm-equiv-wrapped"],
    },
    "optimiser": {
        "Adam, rate 5e-4": ADAM,
        "rate 1e-3": ["optimization.learning_rate=1e-3"],
        "rate 2e-3": ["optimization.learning_rate=2e-3"],
        "batch 4": ["optimization.batch=4"],
        "batch 16": ["optimization.batch=16"],
        "average over 10 times as many steps": ["optimization.ema=0.9999"],
        "cosine from the beginning": ["optimization.schedule=cosine"],
    },
    "photographs": {
        "as they are": _photographs(reduced=0, detail=1, sharpened=0),
        "reduced": _photographs(reduced=0.8, detail=1, sharpened=0),
        "sharpened": _photographs(reduced=0, detail=1, sharpened=0.7),
        "drawn by the square of their detail": _photographs(reduced=0, detail=2, sharpened=0),
        "all three": _photographs(reduced=0.8, detail=2, sharpened=0.7),
    },
    "levels": {
        "up to sigma 55": ["data.sigma=[1, 55]"],
        "up to sigma 65": ["data.sigma=[1, 65]"],
        "up to sigma 75": ["data.sigma=[1, 75]"],
    },
    # With about as many pixels a step.
    "extents": {
        "16 patches of 64": ["data.patch=64", "optimization.batch=16"],
        "4 patches of 128": ["data.patch=128", "optimization.batch=4"],
        "2 patches of 192": ["data.patch=192", "optimization.batch=2"],
    },
    "knowledge": {"the level always told exactly": ["data.mixture=none"]},
    "data": {
        "crops drawn uniformly": ["data.detail=0"],
        "patches of 48": ["data.patch=48"],
        "patches of 96": ["data.patch=96"],
        "balance 0.5": ["optimization.balance=0.5"],
        "balance 1": ["optimization.balance=1"],
        "absolute error": ["optimization.loss=l1"],
    },
}


@dataclass(frozen=True)
class Choice:
    """One run of the search: its place in the list, its budget, and its seed."""

    topic: str
    name: str
    base: str
    seed: int
    budget: str
    data: Path
    init: str | None

    @property
    def key(self) -> dict[str, str]:
        """What tells it from every other row of the CSV."""
        values = (
            self.base,
            str(Path(self.init).with_suffix("")) if self.init else RANDOM,
            self.data.name,
            self.topic,
            self.name,
            self.budget,
            str(self.seed),
        )
        return dict(zip(KEY, values, strict=True))

    @property
    def folder(self) -> str:
        """A name for its run folder, which changes with the fields that it replaces."""
        about = json.dumps([list(self.key.values()), CHOICES[self.topic][self.name]])
        return f"{self.topic}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"

    def recipe(self, *more: str) -> Recipe:
        """Return the base recipe with more fields replaced, those of the choice last."""
        start = [f"network.init={self.init}", *GENTLE] if self.init else []
        changed = CHOICES[self.topic][self.name]
        return load_recipe(self.base, [f"seed={self.seed}", *start, *more, *changed])


def steps_per_second(recipe: Recipe, data: Path, count: int = 20) -> float:
    """Measure the speed of training, data preparation aside.

    By the time of processors: on the clock, other load would shorten the runs of some choices.
    """
    state = State(recipe, Accelerator())
    images = read_folder(data, recipe.network.channels, recipe.data.patch).images
    patches = Patches(images, recipe.data, recipe.seed)
    batch = state.on_device(patches.batch(0, recipe.optimization.batch))
    for _ in range(3):
        state.update(batch)
    start = time.process_time()
    for _ in range(count):
        state.update(batch)
    return count * torch.get_num_threads() / (time.process_time() - start)


def scheduled(choice: Choice, steps: int) -> Recipe:
    """Return the recipe of a run of `steps` steps: a short rise, and a fall over the last half."""
    return choice.recipe(
        f"optimization.steps={steps}",
        f"optimization.warmup={min(200, steps // 10)}",
        "optimization.schedule=constant",
        f"optimization.decay_steps={steps // 2}",
        f"validation.every={steps}",
    )


def run(choice: Choice, given: argparse.Namespace) -> dict[str, str | int]:
    """Train a choice, or go on with it, and return its row."""
    folder = given.runs / choice.folder
    if (folder / "recipe.json").exists():  # as it was begun: speeds differ from day to day
        begun = json.loads((folder / "recipe.json").read_text())
        steps = begun["optimization"]["steps"]
    elif given.steps is not None:
        steps = given.steps
    else:
        steps = round(given.seconds * steps_per_second(choice.recipe(), given.data))
    recipe = scheduled(choice, max(steps, 1))
    resume = any((folder / "checkpoints").glob("*.safetensors"))
    train(recipe, given.data, folder, validation=given.validation, resume=resume)
    scores = read_table(folder / "validation.csv")[-1]
    net = new_network(recipe.network)
    return {
        **choice.key,
        "steps": recipe.optimization.steps,
        "multiply_adds": multiply_adds(net, channels=recipe.network.channels),
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        **{key: f"{scores[key]:.3f}" for key in scores if key.startswith("psnr")},
    }


def add(row: dict[str, str | int]) -> None:
    """Append a row to the file as it is now: another search may have added to it meanwhile."""
    rows = [*read_csv(CSV), {key: str(value) for key, value in row.items()}]
    columns = dict.fromkeys(column for row in rows for column in row)
    write_csv(CSV, [{**dict.fromkeys(columns, ""), **row} for row in rows])
    print(rows[-1], flush=True)


def table(rows: list[dict[str, str]]) -> str:
    """Return the rows, choices that compare with each other below each other."""
    names = ("base", "start", "data", "topic", "choice", "seed", "budget", "steps", "multiply_adds")
    lines = []
    for row in sorted(rows, key=lambda row: (row["start"] != RANDOM, row["base"], row["budget"])):
        scores = " / ".join(f"{float(row[f'psnr_{sigma}']):.2f}" for sigma in (15, 25, 50))
        lines.append([*(row[name] for name in names), scores])
    header = (*names[:2], "images", *names[3:-1], "multiply-adds")
    return markdown([*header, "PSNR (dB) at sigma 15 / 25 / 50"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--validation", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--base", default=BASE, help="recipe that every choice changes")
    parser.add_argument("--init", help="weights that every run starts from")
    parser.add_argument("--only", choices=CHOICES, help="one topic")
    parser.add_argument("--choice", help="one choice of the topic")
    parser.add_argument("--seed", type=int, default=0)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--seconds", type=float, help="equal time for every choice")
    budget.add_argument("--steps", type=int, help="equal steps for every choice")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    if given.choice and given.choice not in CHOICES.get(given.only, {}):
        parser.error(f"--choice {given.choice!r} is not a choice of the topic --only {given.only}")
    torch.set_num_threads(given.threads)
    keep_freed()
    limit = f"{given.steps} steps" if given.seconds is None else f"{given.seconds:g} s"
    for topic in [given.only] if given.only else CHOICES:
        for name in [given.choice] if given.choice else CHOICES[topic]:
            choice = Choice(topic, name, given.base, given.seed, limit, given.data, given.init)
            if choice.key not in [{column: row[column] for column in KEY} for row in read_csv(CSV)]:
                add(run(choice, given))
    fill(DOCS / "search.md", "choices", table(read_csv(CSV)))


if __name__ == "__main__":
    main()
