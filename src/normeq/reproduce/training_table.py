"""The paper's table of training parameters, beside the recipes that are shipped."""

from __future__ import annotations

from typing import Any

from normeq.reproduce.denoisers import TITLES, training_package
from normeq.reproduce.verdicts import Claim, Verdict
from normeq.reproduce.workspace import Workspace

#: Batch, patch, loss, learning rate, steps between halvings (0: none), steps.
PAPER: dict[tuple[str, str], tuple[int, int, str, float, int, int]] = {
    ("drunet", "ordinary"): (16, 128, "l1", 1e-4, 100_000, 800_000),
    ("drunet", "scale-equiv"): (16, 128, "l1", 1e-4, 100_000, 800_000),
    ("drunet", "norm-equiv"): (16, 128, "mse", 1e-4, 0, 1_800_000),
    ("fdncnn", "ordinary"): (128, 70, "l1", 1e-4, 0, 500_000),
    ("fdncnn", "scale-equiv"): (128, 70, "l1", 1e-4, 0, 500_000),
    ("fdncnn", "norm-equiv"): (128, 70, "mse", 1e-4, 0, 900_000),
}
#: The noise of blind and non-blind networks.
PAPER_SIGMA: dict[str, Any] = {"blind": (25.0, 25.0), "nonblind": (1.0, 50.0)}
_COLUMNS = ("batch", "patch", "loss", "rate", "halved every", "steps")


def reproduce(workspace: Workspace) -> None:
    """Print the parameters of the shipped recipes beside the paper's, and whether they agree."""
    load_recipe = training_package().load_recipe
    rows = []
    for (architecture, variant), said in PAPER.items():
        for blindness, sigma in PAPER_SIGMA.items():
            recipe = load_recipe(f"paper-{architecture}-{variant}-{blindness}")
            settings = recipe.optimization
            halved = settings.halve_every if settings.schedule == "halve" else 0
            ours = (
                settings.batch,
                recipe.data.patch,
                settings.loss,
                settings.learning_rate,
                halved,
                settings.steps,
            )
            agree = ours == said and recipe.data.sigma_range == sigma
            rows.append(
                {
                    "model": TITLES[architecture],
                    "variant": variant,
                    "noise": blindness,
                    **dict(zip(_COLUMNS, ours, strict=True)),
                    **{f"paper {c}": value for c, value in zip(_COLUMNS, said, strict=True)},
                    "agree": "yes" if agree else "no",
                }
            )
    workspace.table("training-table", rows)
    same = sum(row["agree"] == "yes" for row in rows)
    verdict = Verdict.HOLDS if same == len(rows) else Verdict.FAILS
    workspace.judge(
        "training-table",
        [
            Claim(
                "Parameters of training: batch, patch, loss, rate, halvings, steps, noise",
                "its table of training parameters",
                f"{same} of {len(rows)} recipes are the same",
                verdict,
                "read from the recipe files; the images beside BSD400 are the user's",
            )
        ],
    )
