from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from helpers.training_runs import write_photographs
from typer.testing import CliRunner

from normeq.cli import app


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    return write_photographs(tmp_path / "photographs")


def test_what_was_skipped_and_what_is_no_number_is_said(photographs, tmp_path, monkeypatch):
    (photographs / "broken.png").write_bytes(b"no image")
    (tmp_path / "lost.py").write_text("def all():\n    return lambda image: image * float('nan')\n")
    monkeypatch.syspath_prepend(tmp_path)
    command = ["evaluate", "lost:all", "--data", str(photographs), "--sigma", "25", "--json"]
    result = CliRunner().invoke(app, command)
    assert "3 images (skipped: 1 unreadable)" in result.stderr
    printed = json.loads(result.stdout, parse_constant=pytest.fail)
    assert printed["skipped"] == {"unreadable": 1}
    assert [score["psnr"] for score in printed["images"]] == [None, None, None]


def test_the_command_prints_a_table_json_and_csv_that_agree(photographs, tmp_path):
    command = ["evaluate", "gaussian_filter", "--data", str(photographs), "--sigma", "15,25.5"]
    table = CliRunner().invoke(app, [*command, "--csv", str(tmp_path / "scores.csv")])
    assert table.exit_code == 0, table.output
    result = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["image"], float(row["psnr"])) for row in rows] == [
        (score["image"], score["psnr"]) for score in result["images"]
    ]
    assert [score["sigma"] for score in result["means"]] == [15.0, 25.5]
    last = table.stdout.splitlines()[-1].split()
    assert last[:2] == ["mean", "25.5"]
    assert float(last[2]) == pytest.approx(result["means"][1]["psnr"], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sigma", "loud"], "--sigma 'loud' is not a list of numbers"),
        (["--noise", "salt"], "'salt' is unknown"),
        (["--csv", "camera.png/scores.csv"], "camera.png cannot be written"),
        (["--sigma", "15,0"], "sigma is 0; noise levels are positive"),
    ],
)
def test_the_command_explains_what_it_cannot_do(photographs, options, sentence, monkeypatch):
    monkeypatch.chdir(photographs)
    command = ["evaluate", "mean_filter", "--data", str(photographs), "--sigma", "25", *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert sentence in result.stderr
