"""``normeq reproduce``: the paper's tables and figures, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normeq.reproduce import Result
from normeq.reproduce.scale import Scale


def reproduce(
    name: Annotated[Result, typer.Argument(help="The table or figure, or all of them.")],
    out: Annotated[Path, typer.Option(help="Folder for the CSV and PNG files.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder with the sets of images: set12, bsd68, bsd400, ...")
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps trained networks, to be used again or continued."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Folder with weights that replace training, named like the recipes."),
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(help="paper: as large as there; small: hours; tiny: a trial of seconds."),
    ] = Scale.SMALL,
) -> None:
    """Measure a table or figure of the paper, print it beside the paper's, write CSV and PNG.

    Can be stopped at any time: the same command continues where it stopped.
    """
    from normeq.reproduce.experiments import EXPERIMENTS, run_experiments
    from normeq.reproduce.workspace import Workspace

    names = EXPERIMENTS if name is Result.ALL else [name.value]
    run_experiments(names, Workspace(out, scale, data, runs, weights, typer.echo))
