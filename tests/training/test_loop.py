from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from helpers.photographs import SHORT, short_recipe, write_photographs
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.errors import FileError, InputError, UsageError
from normeq.training import DivergedError, checkpoint, train
from normeq.training.data import Patches
from normeq.training.log import read_table

Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photographs(tmp_path_factory.mktemp("data") / "photographs")


@pytest.fixture(scope="module")
def finished(photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that was never interrupted."""
    out = tmp_path_factory.mktemp("finished") / "run"
    train(short_recipe(), photographs, out, validation=photographs)
    return out


def command(photographs: Path, out: Path, *more: str) -> list[str]:
    overrides = [word for field in SHORT for word in ("--set", field)]
    folders = ["--data", str(photographs), "--validation", str(photographs), "--out", str(out)]
    return ["train", "tiny", *folders, *overrides, *more]


def assert_same_run(one: Path, other: Path, tolerance: float = 0.0) -> None:
    ours, theirs = (checkpoint.newest(run / "checkpoints") for run in (one, other))
    for value in ("step", "samples"):
        assert ours.values[value] == theirs.values[value]
    assert ours.values["best"] == pytest.approx(theirs.values["best"], abs=1e-6)
    assert_same_tensors(ours.tensors, theirs.tensors, tolerance)
    for name in ("best.safetensors", "last.safetensors"):
        assert (one / name).exists() == (other / name).exists()
        if (one / name).exists():
            weights = (normeq.load(run / name).state_dict() for run in (one, other))
            assert_same_tensors(*weights, tolerance)


def assert_same_tensors(ours: Tensors, theirs: Tensors, tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=tolerance)


def test_a_run_leaves_weights_logs_a_curve_and_its_recipe(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        "best.safetensors",
        "checkpoints",
        "curve.png",
        "last.safetensors",
        "recipe.json",
        "tensorboard",
        "training.csv",
        "validation.csv",
    }
    assert [row["step"] for row in read_table(finished / "training.csv")] == [3, 4, 6, 8, 9, 12]
    validations = read_table(finished / "validation.csv")
    assert [row["step"] for row in validations] == [6, 12]
    card = normeq.load(finished / "last.safetensors").card
    assert (card["steps"], card["samples"]) == (12, 48)
    assert card["validation_psnr"] == {"25": round(validations[-1]["psnr_25"], 3)}
    assert card["recipe"] == json.loads((finished / "recipe.json").read_text())
    assert card["images"] == "3 images"
    assert "earlier" not in card
    best = normeq.load(finished / "best.safetensors").card["validation_psnr"]["25"]
    assert best == round(max(row["psnr"] for row in validations), 3)


def test_a_dead_layer_is_named(photographs, tmp_path):
    recipe = short_recipe()
    network = recipe.network
    net = normeq.create(network.architecture, network.variant, **network.size)
    torch.nn.init.zeros_(net.body[0].branch[0].weight)
    normeq.save(net, tmp_path / "dead.safetensors", {})
    recipe = short_recipe(f"network.init={tmp_path / 'dead.safetensors'}")
    with pytest.warns(UserWarning, match=r"1 of 3 ReLUs .* the first body\.0\.branch\.1"):
        train(recipe, photographs, tmp_path / "run", validation=photographs)


def test_training_learns_to_denoise(photographs, tmp_path):
    recipe = short_recipe("optimization.steps=150", "validation.every=75", "log_every=10")
    report = train(recipe, photographs, tmp_path / "run", validation=photographs)
    noisy = -20 * math.log10(25 / 255)
    assert report.best is not None
    assert report.best > noisy + 2
    assert (report.steps, report.samples) == (150, 600)


@pytest.mark.parametrize("kept", [4, 8])  # before the first validation, and after it
def test_a_run_killed_at_any_moment_ends_as_if_it_never_was(photographs, finished, tmp_path, kept):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "normeq", *command(photographs, out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (out / "checkpoints" / f"step-{kept:09d}.safetensors").exists():
        assert process.poll() is None, f"the run ended before its checkpoint of step {kept}"
        time.sleep(0.001)
    process.kill()
    assert process.wait() != 0
    train(short_recipe(), photographs, out, validation=photographs, resume=True)
    assert_same_run(out, finished)
    assert read_table(out / "validation.csv") == read_table(finished / "validation.csv")


@pytest.mark.parametrize("damage", [b"", None])
def test_a_damaged_newest_checkpoint_costs_only_the_steps_since_the_one_before(
    photographs, finished, tmp_path, damage
):
    out = tmp_path / "run"
    train(short_recipe(), photographs, out, validation=photographs)
    newest = checkpoint.stored(out / "checkpoints")[0]
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content if damage is None else damage)
    with pytest.warns(UserWarning, match="Falling back to the one before"):
        report = train(short_recipe(), photographs, out, validation=photographs, resume=True)
    assert report.steps == 4
    assert_same_run(out, finished)


def test_two_processes_share_a_batch_and_end_with_the_weights_of_one(photographs, tmp_path):
    double = "optimization.dtype=float64"
    train(short_recipe(double), photographs, tmp_path / "one", validation=photographs)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = command(photographs, tmp_path / "two", "--set", double)
    finished = subprocess.run(
        [sys.executable, *launcher, "-m", "normeq", *words],
        env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "processes: 2" in finished.stdout
    assert_same_run(tmp_path / "one", tmp_path / "two", tolerance=1e-9)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_keeps_the_last_step(photographs, finished, tmp_path, number, monkeypatch):
    sample = Patches.sample

    def interrupting(self: Patches, index: int):
        if index == 20:
            signal.raise_signal(number)
        return sample(self, index)

    out = tmp_path / "run"
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Patches, "sample", interrupting)
        result = CliRunner().invoke(app, command(photographs, out))
    assert result.exit_code == 130, result.output
    step = checkpoint.newest(out / "checkpoints").values["step"]
    assert f"stopped after step {step}; continue with --resume" in result.stderr
    assert step < 12
    assert CliRunner().invoke(app, command(photographs, out, "--resume")).exit_code == 0
    assert_same_run(out, finished)


def test_a_finished_run_may_be_prolonged_and_says_so(photographs, tmp_path, capsys):
    constant = "optimization.schedule=constant"
    longer = [constant, "optimization.steps=20", "optimization.decay_steps=8"]
    train(short_recipe(constant), photographs, tmp_path / "run")
    report = train(short_recipe(*longer), photographs, tmp_path / "run", resume=True)
    assert report.steps == 8
    said = capsys.readouterr().out
    assert "continuing after step 12, optimization.steps=20 (was 12)" in said
    [before] = normeq.load(tmp_path / "run" / "last.safetensors").card["earlier"]
    assert (before["until"], before["recipe"]["optimization"]["steps"]) == (12, 12)
    train(short_recipe(*longer), photographs, tmp_path / "whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_a_larger_batch_continues_with_fresh_samples(photographs, tmp_path, monkeypatch):
    train(short_recipe(), photographs, tmp_path / "run")
    drawn = []
    sample = Patches.sample

    def recording(self: Patches, index: int):
        drawn.append(index)
        return sample(self, index)

    monkeypatch.setattr(Patches, "sample", recording)
    larger = short_recipe("optimization.steps=14", "optimization.batch=8")
    train(larger, photographs, tmp_path / "run", resume=True)
    assert drawn == list(range(48, 64))


def test_a_run_that_diverges_stops_and_keeps_its_last_good_checkpoint(
    photographs, tmp_path, monkeypatch
):
    batch = Patches.batch

    def poisoned(self: Patches, first: int, count: int):
        made = batch(self, first, count)
        if first == 40:  # step 10 of batches of four
            made.noisy[0, 0, 0, 0] = math.nan
        return made

    monkeypatch.setattr(Patches, "batch", poisoned)
    with pytest.raises(DivergedError, match=r"diverged before step 12 .*lower"):
        train(short_recipe(), photographs, tmp_path / "run")
    kept = checkpoint.newest(tmp_path / "run" / "checkpoints")
    assert kept.values["step"] == 8
    assert all(t.isfinite().all() for t in kept.part("network").values())


def test_a_network_that_returns_nan_is_not_the_best(photographs, tmp_path, monkeypatch):
    from normeq.training import loop

    monkeypatch.setattr(loop, "psnr", lambda output, clean: math.nan)
    with pytest.raises(DivergedError, match="returns NaN at step 6"):
        train(short_recipe(), photographs, tmp_path / "run", validation=photographs)
    assert not (tmp_path / "run" / "best.safetensors").exists()


def test_a_run_says_where_its_weights_come_from_and_resumes_without_them(photographs, tmp_path):
    begun = tmp_path / "begun.safetensors"
    network = short_recipe().network
    net = normeq.create(network.architecture, network.variant, **network.size)
    normeq.save(net, begun, {"steps": 5})
    recipe = short_recipe(f"network.init={begun}")
    train(recipe, photographs, tmp_path / "run")
    begun.unlink()
    longer = recipe.model_copy(update={"log_every": 5})
    train(longer, photographs, tmp_path / "run", resume=True)
    card = normeq.load(tmp_path / "run" / "last.safetensors").card
    assert card["started_from"] == {"weights": str(begun), "steps": 5}


def test_without_the_extra_the_command_says_what_to_install(photographs, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("normeq.training")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(normeq, "training")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    result = CliRunner().invoke(app, command(photographs, tmp_path / "run"))
    assert result.exit_code == 2
    assert (
        "needs the package accelerate; install it with pip install 'normeq[train]'" in result.stderr
    )


def test_mistakes_are_told_before_any_work(photographs, finished, tmp_path):
    with pytest.raises(UsageError, match="holds a run already; continue it with --resume"):
        train(short_recipe(), photographs, finished)
    with pytest.raises(UsageError, match="widths is 48: use a list of"):
        train(short_recipe("network.size.widths=48"), tmp_path / "absent", tmp_path / "new")
    with pytest.raises(FileError, match="no checkpoint to resume"):
        train(short_recipe(), photographs, tmp_path / "new", resume=True)
    with pytest.raises(InputError, match="holds no image to use"):
        train(short_recipe("data.patch=65"), photographs, tmp_path / "new")
    assert not (tmp_path / "new").exists()
