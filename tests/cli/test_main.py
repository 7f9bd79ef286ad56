"""Options of the program itself, before any command."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import typer
from typer.testing import CliRunner

import normeq.cli
from normeq.cli import app


def test_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"normeq {normeq.__version__}\n"
    assert version("normeq") == normeq.__version__


def test_every_command_has_a_module_and_tests_of_its_name() -> None:
    folders = Path(normeq.cli.__file__).parent, Path(__file__).parent
    for command in typer.main.get_group(app).commands:
        name = command.replace("-", "_")
        for path in (folders[0] / f"{name}.py", folders[1] / f"test_{name}.py"):
            assert path.exists(), f"normeq {command} needs {path}"


def test_help_describes_the_program_not_its_callback() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert "Denoise images in their own units" in result.stdout
    assert "--version" in result.stdout


def test_the_shell_completes_commands() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout
    asked = {"_NORMEQ_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "normeq den"}
    result = CliRunner().invoke(app, [], prog_name="normeq", env=asked)
    assert '"denoise"' in result.stdout


def test_help_shows_types_of_values_but_not_of_flags() -> None:
    assert "<bool>" not in CliRunner().invoke(app, ["--help"]).stdout
    denoise = CliRunner().invoke(app, ["denoise", "--help"]).stdout
    assert "<bool>" not in denoise
    assert "<int>" in denoise
