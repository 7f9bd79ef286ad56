"""Which network and optimiser denoise best after equal training time: choices.csv and its table.

python benchmarks/choices.py --data BSD400 --validation BSD32 --seconds 120 --threads 2
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from accelerate import Accelerator
from pages import DATA, DOCS, fill, markdown

from normeq._support.allocator import keep_freed
from normeq._support.tables import read_csv, write_csv
from normeq.images.folder import read_folder
from normeq.training import load_recipe, train
from normeq.training.data import Patches
from normeq.training.log import read_table
from normeq.training.recipe import Recipe
from normeq.training.state import State

# Each optimiser at the rate that suits it.
ADAM = ["optimization.optimizer=adam", "optimization.learning_rate=2e-3"]
CHOICES = {
    "default-narrow: residual form, sort pooling, widths 32, 64, 128, Muon": [],
    "ReLU": ["network.size.sort=false"],
    "affine form": ["network.variant=norm-equiv"],
    "Adam": ADAM,
    "widths 48, 96, 192": ["network.size.widths=[48,96,192]"],
}


def steps_per_second(recipe: Recipe, data: Path, count: int = 20) -> float:
    """Measure the speed of training, data preparation aside."""
    state = State(recipe, Accelerator())
    patches = Patches(read_folder(data, 1, recipe.data.patch).images, recipe.data, recipe.seed)
    batch = state.on_device(patches.batch(0, recipe.optimization.batch))
    for _ in range(3):
        state.update(batch)
    start = time.perf_counter()
    for _ in range(count):
        state.update(batch)
    return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--validation", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed()
    rows = []
    for name, fields in CHOICES.items():
        speed = steps_per_second(load_recipe("default-1-narrow", fields), given.data)
        steps = round(given.seconds * speed)
        timing = [
            f"optimization.steps={steps}",
            f"optimization.warmup={steps // 10}",
            f"optimization.decay_steps={steps // 2}",
            f"validation.every={steps}",
        ]
        recipe = load_recipe("default-1-narrow", [*fields, *timing])
        with TemporaryDirectory() as folder:
            report = train(recipe, given.data, Path(folder, "run"), validation=given.validation)
            [scores] = read_table(Path(folder, "run", "validation.csv"))
        rows.append(
            {
                "choice": name,
                "seconds": f"{report.training:.0f}",
                "steps": steps,
                **{key: f"{scores[key]:.2f}" for key in scores if key.startswith("psnr")},
            }
        )
        write_csv(DATA / "choices.csv", rows)
        print(rows[-1], flush=True)
    fill(DOCS / "models.md", "choices", table())


def table() -> str:
    columns = {"choice": "choice", "seconds": "seconds", "steps": "steps", "psnr": "PSNR (dB)"}
    rows = [[row[name] for name in columns] for row in read_csv(DATA / "choices.csv")]
    return markdown(list(columns.values()), rows)


if __name__ == "__main__":
    main()
