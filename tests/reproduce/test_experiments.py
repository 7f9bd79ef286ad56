"""Every experiment at a tiny scale, on images of its own, with networks that know nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.darmstadt_set import write_darmstadt
from helpers.paper_sets import write_random_weights, write_sets
from typer.testing import CliRunner

from normeq._support.tables import read_csv
from normeq.cli import app
from normeq.reproduce import equivariance_table
from normeq.reproduce.adaptive_filters import choose_places
from normeq.reproduce.denoisers import PAPER_FORMS
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


def test_every_experiment_has_a_trial_run_and_a_section() -> None:
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        trial = f"test_{name.replace('-', '_')}"
        has_trial = trial in globals() or Path(__file__).with_name(f"{trial}.py").exists()
        assert has_trial, f"give {name} a trial run, {trial}, in {__file__}"
        assert f"<!-- {name}: begin -->" in page, f"give {name} a section in docs/paper.md"


def test_training_table(tmp_path):
    said = run("training-table", tmp_path)
    rows = read_csv(tmp_path / "training-table.csv")
    assert len(rows) == 12
    assert {row["agree"] for row in rows} == {"yes"}
    assert said[-1].startswith("holds: Parameters of training")


def test_propositions(tmp_path):
    run("propositions", tmp_path)
    judged = read_csv(tmp_path / "propositions-claims.csv")
    assert [row["verdict"] for row in judged] == ["holds"] * 4
    for row in read_csv(tmp_path / "propositions.csv"):
        assert int(row["kinks on a line"]) > 0
        assert float(row["share of bent points"]) < 0.3
        assert 2 <= int(row["pieces, sort pooling"]) <= 16 < int(row["pieces, ReLU"]) <= 256


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


def test_psnr_table(tmp_path):
    data = write_sets(tmp_path / "data", "set12", "bsd68")
    weights = write_random_weights(tmp_path / "weights", "psnr-table")
    run("psnr-table", tmp_path, data, weights)
    rows = read_csv(tmp_path / "psnr-table.csv")
    assert len(rows) == 2 * 2 * 6
    first = rows[0]
    assert (first["network"], first["form"], first["set"]) == ("DRUNet", "ordinary", "Set12")
    assert (first["paper 15"], first["paper 50"], first["spread"]) == ("33.23", "27.87", "")
    assert {row["spread"] == "" for row in rows if row["form"] == "norm-equiv"} == {False}
    assert not (tmp_path / "psnr-table.png").exists()  # weights that were given have no curves
    shutil.rmtree(data / "bsd68")
    for name in ("seed", "residual", "wrapped", "telescoped"):
        for path in weights.glob(f"*{name}*"):
            path.unlink()  # what is published: the paper's variants, each once
    said = run("psnr-table", tmp_path, data, weights)
    assert sum(line.startswith("left out, because neither --runs") for line in said) == 2
    assert len(read_csv(tmp_path / "psnr-table-claims.csv")) == 2
    assert any(line.startswith("skipped: psnr-table needs the set bsd68") for line in said)
    assert {row["set"] for row in read_csv(tmp_path / "psnr-table.csv")} == {"Set12"}


def test_explicit_normalization(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "explicit-normalization")
    run("explicit-normalization", tmp_path, data, weights)
    rows = read_csv(tmp_path / "explicit-normalization.csv")
    for row in rows:
        same = abs(float(row["as it is"]) - float(row["scaled"])) < 0.01
        if row["form"] != "ordinary":
            assert same  # a scale-equivariant network does it by itself
    shifts = read_csv(tmp_path / "explicit-normalization-shift.csv")
    by_form = {form: [float(r["psnr"]) for r in shifts if r["form"] == form and r["seed"] == "0"]
               for form in ("scale-equiv", "norm-equiv")}  # fmt: skip
    assert np.ptp(by_form["norm-equiv"]) < 0.01 < np.ptp(by_form["scale-equiv"])
    patches = read_csv(tmp_path / "explicit-normalization-patches.csv")
    assert all(float(list(row.values())[1]) <= float(list(row.values())[2]) for row in patches)


def test_adaptive_filters(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "adaptive-filters")
    run("adaptive-filters", tmp_path, data, weights)
    rows = read_csv(tmp_path / "adaptive-filters.csv")
    assert [row["pixel"] for row in rows[:3]] == ["flat", "edge", "texture"]
    sums = {form: [float(r["sum"]) for r in rows if r["form"] == form] for form in PAPER_FORMS}
    assert np.allclose(sums["norm-equiv"], 1, atol=1e-4)
    assert not np.allclose(sums["scale-equiv"], 1, atol=1e-2)
    assert (tmp_path / "adaptive-filters.png").exists()


def test_places_are_flat_on_an_edge_and_in_texture():
    image = np.zeros((120, 120))
    image[:, 60:] = 0.5
    image[70:, 80:] += 0.3 * np.random.default_rng(0).random((50, 40))
    places = choose_places(image)
    assert abs(places["edge"][1] - 59.5) < 3
    assert min(places["texture"]) > 70
    assert abs(places["flat"][1] - 59.5) > 10


def test_normalization_sweep(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "normalization-sweep")
    run("normalization-sweep", tmp_path, data, weights)
    rows = read_csv(tmp_path / "normalization-sweep.csv")
    pairs = {(row["a"], row["b"]) for row in rows if row["form"] == "ordinary"}
    assert pairs == {("0.0", "0.5"), ("0.0", "1.0"), ("0.5", "1.0")}
    for row in read_csv(tmp_path / "normalization-sweep-summary.csv"):
        assert float(row["norm-equiv varies by"]) < 0.01
        assert float(row["best"]) >= float(row["natural (0, 1)"])
    (tmp_path / "fmd").mkdir()
    with pytest.raises(Unavailable, match="needs images in"):
        run("normalization-sweep", tmp_path, tmp_path, weights)


def test_raw_table(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "raw-table")
    sets = tmp_path / "data"
    sets.mkdir()
    for name in ("fmd", "cc15"):
        (sets / name).symlink_to(data / name)
    mosaics = write_darmstadt(sets / "dnd", images=1)
    said = run("raw-table", tmp_path, sets, weights)
    rows = read_csv(tmp_path / "raw-table.csv")
    assert [row["network"] for row in rows] == ["noisy"] + ["DRUNet"] * 3 + ["FDnCNN"] * 3
    assert float(rows[0]["fmd PSNR"]) == pytest.approx(28.1, abs=0.5)  # noise of 10 out of 255
    assert rows[1]["paper, DND: PSNR"] == "47.58"
    assert len(read_csv(tmp_path / "raw-table-claims.csv")) == 4
    written = sorted(path.parent.name for path in tmp_path.glob("dnd-*/0001.mat"))
    assert len(written) == 6
    assert any("files for the Darmstadt benchmark" in line for line in said)
    assert mosaics[0].shape == (48, 64)


def test_classification_table(tmp_path, data):
    weights = write_random_weights(tmp_path / "weights", "classification-table")
    said = run("classification-table", tmp_path, data, weights)
    assert any("needs the set kmnist" in line for line in said)
    assert "MNIST has 24 training images here, not 60,000" in said
    rows = read_csv(tmp_path / "classification-table.csv")
    assert [row["set"] for row in rows] == ["MNIST"] * 3 + ["Fashion-MNIST"] * 3
    assert [row["paper %"] for row in rows[:3]] == ["0.26", "0.37", "0.44"]
    for row in read_csv(tmp_path / "classification-table-units.csv"):
        follows = row["variant"] == "norm-equiv" or (
            row["variant"] == "scale-equiv" and row["offset"] == "0.0"
        )
        assert not follows or float(row["labels changed %"]) == 0


def test_time_table(tmp_path):
    run("time-table", tmp_path)
    rows = read_csv(tmp_path / "time-table.csv")
    assert [row["variant"] for row in rows] == [
        "ordinary", "scale-equiv", "sort only", "affine only", "norm-equiv",
    ]  # fmt: skip
    assert rows[-1]["paper training ratio, CPU"] == "1.21"
    assert rows[-1]["paper inference ratio, GPU"] == "1.82"
    assert float(rows[1]["training ratio"]) == 1


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
    assert f"training-table (3 of {len(EXPERIMENTS)})" in result.output
    assert "skipped: noise-generalization needs images" in result.output
    assert (tmp_path / "training-table.csv").exists()
