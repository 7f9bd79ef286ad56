from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from normeq.cli import app


def test_demo(tmp_path: Path) -> None:
    arguments = ["demo", "-o", str(tmp_path / "demo"), "--model", "gaussian_filter"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    before, after = (float(line.split()[-2]) for line in result.stdout.splitlines()[:2])
    assert after > before + 2
    assert (tmp_path / "demo/camera.preview.png").exists()


def test_demo_tells_a_function_the_level_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_for_demo.py").write_text("def f():\n    return lambda y, sigma: y - sigma\n")
    monkeypatch.syspath_prepend(tmp_path)
    command = ["demo", "-o", str(tmp_path / "out"), "--model", "mine_for_demo:f", "--sigma", "20"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
