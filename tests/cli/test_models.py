from __future__ import annotations

import pytest
from typer.testing import CliRunner

from normeq.classical import METHODS
from normeq.cli import app
from normeq.models import read_card, shipped
from normeq.models.releases import installed_release


def test_every_model_has_a_line_that_describes_it() -> None:
    result = CliRunner().invoke(app, ["models"])
    assert result.exit_code == 0, result.output
    described = dict(
        line.split(maxsplit=1) for line in result.stdout.splitlines() if line[0] == " "
    )
    assert described.keys() == {*map(str, map(installed_release, shipped())), *METHODS}
    assert described[str(installed_release("default"))] == read_card("default")["description"]
    assert described["bm3d"] == "Filter groups of similar patches in 3-D, twice (needs --sigma)"


@pytest.mark.parametrize(
    ("command", "near"), [("check", "defualt"), ("info", "Defaults"), ("info", "./default")]
)
def test_a_near_miss_is_suggested(command: str, near: str) -> None:
    result = CliRunner().invoke(app, [command, near])
    assert result.exit_code == 2
    assert "Did you mean 'default'?" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_case_does_not_matter() -> None:
    assert "norm-equiv-residual" in CliRunner().invoke(app, ["info", "Default"]).stdout
    assert CliRunner().invoke(app, ["info", "NLM"]).exit_code == 0
