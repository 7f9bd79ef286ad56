"""The paper's denoisers, and our forms of them, as networks to be trained."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normeq.errors import UsageError
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import Trainable
from normeq.reproduce.workspace import Workspace

if TYPE_CHECKING:
    from normeq.training import Recipe

ARCHITECTURES = ("drunet", "fdncnn")
TITLES = {"drunet": "DRUNet", "fdncnn": "FDnCNN"}
#: The paper's three variants; the last one with kernels that are projected, not telescoped.
PAPER_FORMS = ("ordinary", "scale-equiv", "norm-equiv")
OUR_FORMS = ("norm-equiv-residual", "norm-equiv-wrapped")
TELESCOPED = "norm-equiv-telescoped"
#: The row of every comparison that is trained with three seeds, and the seeds.
REPEATED = "norm-equiv"
SEEDS = (0, 1, 2)
#: Level of the noise on which blind networks are trained.
TRAINED_AT = 25

_SIZES = {
    Scale.SMALL: {
        "drunet": "{widths = [16, 32, 64, 128], blocks = 2}",
        "fdncnn": "{width = 32, depth = 10}",
    },
    Scale.TINY: {
        "drunet": "{widths = [4, 6], blocks = 1}",
        "fdncnn": "{width = 4, depth = 3}",
    },
}
_SCHEDULE = [
    "optimization.loss=mse",
    "optimization.learning_rate=1e-3",
    "optimization.betas=[0.9, 0.99]",
    "optimization.schedule=cosine",
    "optimization.clip=0.1",
]
_REDUCED = {
    Scale.SMALL: [
        *_SCHEDULE,
        "data.patch=48",
        "optimization.batch=8",
        "optimization.steps=1000",
        "optimization.warmup=100",
        "optimization.mixed_precision=bf16",
        "validation.every=100",
        "validation.crop=128",
        "checkpoint_every=200",
    ],
    Scale.TINY: [
        *_SCHEDULE,
        "data.patch=16",
        "optimization.batch=2",
        "optimization.steps=4",
        "optimization.warmup=1",
        "validation.every=4",
        "validation.crop=32",
        "checkpoint_every=2",
    ],
}


@dataclass(frozen=True)
class PaperDenoiser(Trainable):
    """One network of the paper, or one of our forms.

    Attributes
    ----------
    architecture
        ``"drunet"`` or ``"fdncnn"``.
    form
        A variant, or ``"norm-equiv-telescoped"``.
    blind
        Trained at one noise level without being told it; else told levels from 1 to 50.
    noise
        Family of the noise.
    seed
        Of weights and samples.
    """

    architecture: str
    form: str
    blind: bool
    noise: str = "gaussian"
    seed: int = 0

    @property
    def name(self) -> str:
        parts = [f"paper-{self.architecture}-{self.form}", "blind" if self.blind else "nonblind"]
        parts += [self.noise] * (self.noise != "gaussian")
        parts += [f"seed{self.seed}"] * (self.seed != 0)
        return "-".join(parts)

    @property
    def is_essential(self) -> bool:
        return self.form in PAPER_FORMS and self.seed == 0

    def recipe(self, scale: Scale) -> Recipe:
        """Return the shipped recipe, with what this form, noise, seed and scale change."""
        load_recipe = training_package().load_recipe
        shipped = self.form if self.form in PAPER_FORMS else "norm-equiv"
        variant = "norm-equiv" if self.form == TELESCOPED else self.form
        overrides = [f"network.variant={variant}", f"data.noise={self.noise}", f"seed={self.seed}"]
        if scale is not Scale.PAPER:
            overrides += [f"network.size={_SIZES[scale][self.architecture]}", *_REDUCED[scale]]
        if self.form == TELESCOPED:
            overrides.append("network.size.telescoped=true")
        overrides.append(f'description="{self.name} of the paper, scale {scale}."')
        blindness = "blind" if self.blind else "nonblind"
        recipe: Recipe = load_recipe(f"paper-{self.architecture}-{shipped}-{blindness}", overrides)
        return recipe

    def recipe_text(self, scale: Scale) -> str:
        # Fields that a later version adds do not change what was trained without them.
        unimportant = {"description", "checkpoint_every", "log_every"}
        return self.recipe(scale).model_dump_json(exclude=unimportant, exclude_defaults=True)

    def reductions(self, scale: Scale) -> list[str]:
        if scale is Scale.PAPER:
            return [
                "kernels of norm-equiv are projected; only the telescoped row is as in the paper"
            ]
        settings = [
            f"{key.partition('.')[2]}" for key in _REDUCED[scale] if key[:3] in ("opt", "dat")
        ]
        return [
            *(f"{TITLES[name]}: {size.strip('{}')}" for name, size in _SIZES[scale].items()),
            "denoisers: one loss, schedule and number of steps for all variants: "
            + ", ".join(settings),
            "denoisers: trained on BSD400 alone, if there is no folder training",
        ]

    def steps(self, scale: Scale) -> int:
        return self.recipe(scale).optimization.steps

    def steps_done(self, run: Path) -> int:
        stored = training_package().checkpoint.stored(run / "checkpoints")
        return int(stored[0].stem.partition("-")[2]) if stored else 0

    def train(self, workspace: Workspace, run: Path) -> None:
        training = training_package()
        try:
            training.train(
                self.recipe(workspace.scale),
                workspace.folder("training|bsd400", f"training {self.name}"),
                run,
                validation=workspace.folder("bsd32", f"training {self.name}"),
                resume=self.steps_done(run) > 0,
            )
        except training.Stopped as stopped:
            raise training.Stopped(
                f"{self.name}: stopped after step {self.steps_done(run)}; give the same command "
                "again to go on."
            ) from stopped

    def curve(self, workspace: Workspace) -> list[tuple[int, float]]:
        """Return steps and validation PSNR of the run; nothing for weights that were given."""
        run = self.run_folder(workspace)
        if run is None or self.given(workspace) is not None:
            return []
        path = run / "validation.csv"
        if not path.is_file():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return [(int(float(row["step"])), float(row["psnr"])) for row in csv.DictReader(file)]


def rise(curve: Sequence[tuple[int, float]]) -> float:
    """Return how much a curve of PSNR rose over the last fifth of its steps; 0 without one.

    Examples
    --------
    >>> rise([(100, 20.0), (800, 29.0), (1000, 29.5)])
    0.5
    """
    if not curve:
        return 0.0
    last, value = curve[-1]
    earlier = [psnr for step, psnr in curve if step <= 0.8 * last]
    return value - earlier[-1] if earlier else float("inf")


def largest_rise(denoisers: Sequence[PaperDenoiser], workspace: Workspace) -> float:
    """Return how much PSNR the network that still learns fastest gained at the end of training."""
    return max(rise(each.curve(workspace)) for each in denoisers)


def with_seeds(denoisers: Sequence[PaperDenoiser]) -> list[PaperDenoiser]:
    """Add the other seeds of the row that is repeated in every comparison."""
    added = []
    for each in denoisers:
        seeds = SEEDS if each.form == REPEATED else (each.seed,)
        added += [
            PaperDenoiser(each.architecture, each.form, each.blind, each.noise, seed)
            for seed in seeds
        ]
    return added


def training_package() -> Any:
    """Return `normeq.training`, or say which extra it needs."""
    try:
        from normeq import training

        training.train  # loaded now, with what an extra installs  # noqa: B018
    except ModuleNotFoundError as error:
        raise UsageError(
            f"training needs the package {error.name}: pip install 'normeq[train]'."
        ) from error
    return training
