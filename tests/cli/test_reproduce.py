from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from normeq.cli import app
from normeq.reproduce import equivariance_table
from normeq.reproduce.equivariance_rows import entries


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivariance_table, "entries", lambda: entries()[-3:])
    out = tmp_path / "new" / "folder"
    result = CliRunner().invoke(app, ["reproduce", "equivariance-table", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "norm-equiv-wrapped" in result.stdout
    assert sorted(file.name for file in out.iterdir()) == [
        "equivariance-table-claims.csv",
        "equivariance-table.csv",
        "equivariance-table.png",
    ]


def test_an_unwritable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivariance_table, "entries", lambda: entries()[-1:])
    (tmp_path / "file").write_text("in the way")
    result = CliRunner().invoke(
        app, ["reproduce", "all", "--out", str(tmp_path / "file" / "folder")]
    )
    assert result.exit_code == 1
    assert "cannot be written" in result.output
