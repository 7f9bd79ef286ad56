"""``normeq reproduce``: the paper's tables and figures, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normeq.reproduce import Result
from normeq.reproduce.scale import Scale


def reproduce(
    name: Annotated[Result, typer.Argument(help="The table or figure.")],
    out: Annotated[Path, typer.Option(help="Folder for the CSV and PNG files.")],
    scale: Annotated[Scale, typer.Option(help="Size of the experiment.")] = Scale.SMALL,
) -> None:
    """Measure a table or figure of the paper, print it, and write it as CSV and PNG."""
    from importlib import import_module

    every = [result for result in Result if result != Result.ALL]
    for result in every if name == Result.ALL else [name]:
        module = import_module(f"normeq.reproduce.{result.value.replace('-', '_')}")
        module.reproduce(out, scale)
