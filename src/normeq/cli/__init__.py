"""The command line: thin subcommands over the jobs, one module each.

A command's module imports nothing heavy at its top, so that ``normeq --help`` is instant;
a `NormeqError` from any of them becomes one sentence on standard error and an exit code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from normeq import __version__
from normeq._support.allocator import keep_freed
from normeq.cli import stopping
from normeq.cli.adapt import adapt
from normeq.cli.bench import bench
from normeq.cli.check import check
from normeq.cli.configuration import read_defaults
from normeq.cli.convert import convert
from normeq.cli.demo import demo
from normeq.cli.denoise import denoise
from normeq.cli.evaluate import evaluate
from normeq.cli.explain import explain
from normeq.cli.explore import explore
from normeq.cli.export import export
from normeq.cli.import_weights import import_weights
from normeq.cli.info import info
from normeq.cli.models import models
from normeq.cli.noise import noise
from normeq.cli.reproduce import reproduce
from normeq.cli.train import train
from normeq.errors import NormeqError


def _plain_flags(params: list[Any]) -> list[Any]:
    """Let the help show no type beside flags, which take no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_flags(super().get_params(ctx))


class _SentenceGroup(TyperGroup):
    """A command group that turns our exceptions into sentences instead of tracebacks."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NormeqError as error:
            typer.echo(f"normeq: {error}", err=True)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as stop:
            typer.echo(f"normeq: {stopping.advice(ctx.invoked_subcommand)}", err=True)
            raise typer.Exit(stopping.exit_code(stop)) from stop


app = typer.Typer(
    cls=_SentenceGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # which joins the lines of a paragraph
    help="Denoise images in their own units, and build, check and train equivariant networks.",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"normeq {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with defaults of options, in place of the user's own."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that precede a command."""
    ctx.default_map = read_defaults(ctx, config)


for _command in (
    adapt,
    bench,
    check,
    convert,
    demo,
    denoise,
    evaluate,
    explain,
    explore,
    export,
    import_weights,
    info,
    models,
    noise,
    reproduce,
    train,
):
    app.command(cls=_Command)(_command)


def main() -> None:
    """Run the command line."""
    keep_freed()
    stopping.listen()
    app(prog_name="normeq")
