"""``normeq train``: train a network as a recipe says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[str, typer.Argument(help="Shipped recipe or TOML file.")],
    data: Annotated[Path, typer.Option(help="Folder of clean training images.")],
    out: Annotated[Path, typer.Option(help="Run folder: weights, logs and checkpoints.")],
    validation: Annotated[
        Path | None, typer.Option(help="Folder of clean images to choose the best weights by.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the run folder's newest checkpoint.")
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a field of the recipe."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; default: OMP_NUM_THREADS.")
    ] = None,
    compile_: Annotated[bool, typer.Option("--compile", help="Use torch.compile.")] = False,
) -> None:
    """Train a network from a recipe.

    Several processes: accelerate launch --num_processes N -m normeq train ...
    """
    from normeq.errors import UsageError

    try:
        from normeq import training
        from normeq.training.loop import train as run  # which needs what an extra installs
    except ModuleNotFoundError as error:
        raise UsageError(
            f"training needs the package {error.name}: pip install 'normeq[train]'."
        ) from error
    run(
        training.load_recipe(recipe, overrides),
        data,
        out,
        validation=validation,
        resume=resume,
        threads=threads,
        compile=compile_,
    )
