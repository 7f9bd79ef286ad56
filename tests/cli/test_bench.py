from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

import normeq.bench
from normeq.cli import app

TINY = {"batch": 1, "size": 16, "rounds": 3, "widths": (4, 6), "blocks": 1}


def test_command_writes_a_table_and_a_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = normeq.bench.measure

    def tiny(network: str, job: str, **options: object) -> object:
        return measure(network, job, **TINY)

    monkeypatch.setattr(normeq.bench, "measure", tiny)
    result = CliRunner().invoke(app, ["bench", "unet", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    with (tmp_path / "speed.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["job"] for row in rows} == {"inference", "training"}
    assert all(float(row["ratio"]) > 0 for row in rows)
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_command_refuses_unknown_networks() -> None:
    result = CliRunner().invoke(app, ["bench", "resnet"])
    assert result.exit_code == 2
    assert "drunet" in result.output
