"""Defaults of options, from a configuration file of the user.

Only the user's own folder and a file that is named on the command line count: a file that lies
beside the images must not change what a command does.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import typer

from normeq._support.near_misses import suggestion
from normeq.errors import UsageError, reason


def user_file() -> Path:
    """Return the configuration file in the user's folder, which need not exist."""
    variable, usual = (
        ("APPDATA", "AppData/Roaming") if os.name == "nt" else ("XDG_CONFIG_HOME", ".config")
    )
    folder = Path(os.environ.get(variable, ""))
    # A relative folder would be one in the working directory.
    folder = folder if folder.is_absolute() else Path.home() / usual
    return folder / "normeq" / "config.toml"


def read_defaults(ctx: typer.Context, file: Path | None) -> dict[str, dict[str, Any]]:
    """Return the defaults in a file for each command, by the names of its parameters.

    Parameters
    ----------
    ctx
        The context of the program, which knows all commands.
    file
        The file, a table for each command; that of the user, if there is one, if None.
    """
    path = user_file() if file is None else file
    if file is None and not path.is_file():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as TOML ({reason(error)}).") from error
    commands: dict[str, Any] = ctx.command.commands  # type: ignore[attr-defined]
    defaults = {}
    for name, table in tables.items():
        if name not in commands or not isinstance(table, dict):
            raise UsageError(
                f"{path}: [{name}] does not name a command.{suggestion(name, commands)}"
            )
        defaults[name] = _by_parameter(ctx, commands[name], table, f"{path}: [{name}]")
    return defaults


def _by_parameter(
    ctx: typer.Context, command: Any, table: dict[str, Any], place: str
) -> dict[str, Any]:
    """Check the options of one command, and return them by the names of its parameters."""
    options = {
        name.removeprefix("--"): parameter
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("--")
    }
    found = {}
    for name, value in table.items():
        parameter = options.get(name)
        if parameter is None:
            raise UsageError(f"{place} has no option {name!r}.{suggestion(name, options)}")
        try:
            parameter.process_value(ctx, value)
        except (typer.BadParameter, TypeError, ValueError) as error:
            said = getattr(error, "message", reason(error))
            raise UsageError(f"{place} {name} = {value!r}: {said}") from error
        if name == "model":
            _refuse_code(str(value), place)
        found[parameter.name] = value
    return found


def _refuse_code(model: str, place: str) -> None:
    from normeq.denoising.names import is_factory

    if is_factory(model):
        raise UsageError(
            f"{place} names {model}, which would run code: name it with --model on the command "
            "line instead."
        )
