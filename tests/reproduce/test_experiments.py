"""Every experiment at a tiny scale, on images of its own, with networks that know nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.paper_sets import write_random_weights, write_sets
from typer.testing import CliRunner

from normeq._support.tables import read_csv
from normeq.cli import app
from normeq.reproduce import equivariance_table
from normeq.reproduce.equivariance_rows import entries
from normeq.reproduce.experiments import EXPERIMENTS, run_experiments
from normeq.reproduce.scale import Scale
from normeq.reproduce.workspace import Unavailable, Workspace

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


def run(name: str, out: Path, data: Path | None = None, weights: Path | None = None) -> list[str]:
    said: list[str] = []
    workspace = Workspace(out, Scale.TINY, data, None, weights, said.append)
    run_experiments([name], workspace)
    return said


def test_the_recipes_are_the_papers(tmp_path):
    said = run("training-table", tmp_path)
    rows = read_csv(tmp_path / "training-table.csv")
    assert len(rows) == 12
    assert {row["agree"] for row in rows} == {"yes"}
    assert said[-1].startswith("holds: Parameters of training")


def test_noise_generalization(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "noise-generalization")
    run("noise-generalization", tmp_path, data, weights)
    rows = read_csv(tmp_path / "noise-generalization.csv")
    assert [row["network"] for row in rows] == ["DRUNet"] * 3 + ["FDnCNN"] * 3
    assert float(rows[0]["noisy"]) == pytest.approx(34.2, abs=0.2)  # 20·log10(255 / 5)
    assert all(float(row["spread"]) > 0 for row in rows)
    judged = read_csv(tmp_path / "noise-generalization-claims.csv")
    assert len(judged) == 6
    assert {row["verdict"] for row in judged} == {"not decidable at this scale"}
    assert judged[0]["hours"] == "7.00"
    assert (tmp_path / "noise-generalization.png").read_bytes().startswith(b"\x89PNG")


def test_noise_families(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "noise-families")
    run("noise-families", tmp_path, data, weights)
    rows = read_csv(tmp_path / "noise-families.csv")
    kinds = [row["network"].split(", ")[1] for row in rows]
    assert list(dict.fromkeys(kinds)) == ["uniform noise", "laplace noise", "rayleigh noise"]
    assert (tmp_path / "noise-families-fdncnn.png").exists()


def test_missing_sets_and_folders_are_sentences(tmp_path, data):
    with pytest.raises(Unavailable, match="needs images: give --data"):
        run("noise-generalization", tmp_path)
    with pytest.raises(Unavailable, match="needs the set set12, which is not in"):
        run("noise-generalization", tmp_path, tmp_path)
    with pytest.raises(Unavailable, match="given by --data, is not a folder"):
        run("noise-generalization", tmp_path, tmp_path / "none")


def test_of_all_experiments_those_that_lack_something_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(equivariance_table, "entries", lambda: entries()[-1:])
    arguments = ["reproduce", "all", "--out", str(tmp_path), "--scale", "tiny"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert f"training-table (2 of {len(EXPERIMENTS)})" in result.output
    assert "skipped: noise-generalization needs images" in result.output
    assert (tmp_path / "training-table.csv").exists()
