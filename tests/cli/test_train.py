from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.training_runs import assert_same_run, short_recipe, train_command
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.training import checkpoint, train
from normeq.training.data import Patches
from normeq.training.log import read_table


@pytest.mark.parametrize("kept", [4, 8])  # before the first validation, and after it
def test_a_run_killed_at_any_moment_ends_as_if_it_never_was(photographs, finished, tmp_path, kept):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "normeq", *train_command(photographs, out)],
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


def test_two_processes_share_a_batch_and_end_with_the_weights_of_one(photographs, tmp_path):
    double = "optimization.dtype=float64"
    train(short_recipe(double), photographs, tmp_path / "one", validation=photographs)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = train_command(photographs, tmp_path / "two", "--set", double)
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
        result = CliRunner().invoke(app, train_command(photographs, out))
    assert result.exit_code == 130, result.output
    step = checkpoint.newest(out / "checkpoints").values["step"]
    assert f"stopped after step {step}; continue with --resume" in result.stderr
    assert step < 12
    assert CliRunner().invoke(app, train_command(photographs, out, "--resume")).exit_code == 0
    assert_same_run(out, finished)


def test_without_the_extra_the_command_says_what_to_install(photographs, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("normeq.training")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(normeq, "training")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    result = CliRunner().invoke(app, train_command(photographs, tmp_path / "run"))
    assert result.exit_code == 2
    assert "needs the package accelerate: pip install 'normeq[train]'" in result.stderr
