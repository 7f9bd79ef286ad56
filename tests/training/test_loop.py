from __future__ import annotations

import json
import math

import pytest
import torch
from helpers.training_runs import assert_same_run, short_recipe

import normeq
from normeq.errors import FileError, InputError, UsageError
from normeq.training import DivergedError, checkpoint, train
from normeq.training.data import Patches
from normeq.training.log import read_table


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


def test_mistakes_are_told_before_any_work(photographs, finished, tmp_path):
    with pytest.raises(UsageError, match="already contains a run; continue it with --resume"):
        train(short_recipe(), photographs, finished)
    with pytest.raises(UsageError, match="widths is 48: use a list of"):
        train(short_recipe("network.size.widths=48"), tmp_path / "absent", tmp_path / "new")
    with pytest.raises(FileError, match="no checkpoint to resume"):
        train(short_recipe(), photographs, tmp_path / "new", resume=True)
    with pytest.raises(InputError, match="contains no usable image"):
        train(short_recipe("data.patch=65"), photographs, tmp_path / "new")
    assert not (tmp_path / "new").exists()
