from __future__ import annotations

from pathlib import Path

import pytest
from helpers.paper_sets import write_sets

from normeq._support.locking import locked
from normeq.errors import BusyError, FileError
from normeq.models import create, load, save
from normeq.reproduce.denoisers import SEEDS, PaperDenoiser, with_seeds
from normeq.reproduce.experiments import reductions
from normeq.reproduce.scale import Scale
from normeq.reproduce.workspace import Unavailable, Workspace
from normeq.training import Stopped, load_recipe

NETWORK = PaperDenoiser("fdncnn", "norm-equiv-residual", blind=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    data = write_sets(tmp_path / "data", "bsd400", "bsd32")
    said: list[str] = []
    space = Workspace(tmp_path, Scale.TINY, data, tmp_path / "runs", say=said.append)
    space.plan = [NETWORK, PaperDenoiser("fdncnn", "ordinary", blind=True)]
    return space


def only(folder: Path) -> Path:
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return found


def test_a_network_is_trained_once_and_then_used_again(workspace, monkeypatch):
    said = workspace.say.__self__
    first = NETWORK.network(workspace)
    assert said[0] == (
        "training paper-fdncnn-norm-equiv-residual-blind at scale tiny: network 1 of 2, "
        "time left not known yet"
    )
    monkeypatch.setattr(PaperDenoiser, "train", None)  # to be called no more
    second = NETWORK.network(workspace)
    assert first.variant == second.variant == "norm-equiv-residual"
    assert NETWORK.steps_left(workspace) == 0
    assert [step for step, _ in NETWORK.curve(workspace)] == [4]
    assert len(said) == 1


def test_an_interrupted_run_goes_on_and_ends_the_same(workspace, monkeypatch):
    from normeq.training import loop

    whole = NETWORK.network(workspace).state_dict()
    other = Workspace(
        workspace.out, Scale.TINY, workspace.data, workspace.out / "others", say=lambda _: None
    )
    steps = []

    def stop_in_the_middle(self):
        steps.append(self._state.step)
        if self._state.step == 2 and len(steps) < 4:
            self._stop()

    original = loop._Session._after_step

    def counted(self):
        original(self)
        stop_in_the_middle(self)

    monkeypatch.setattr(loop._Session, "_after_step", counted)
    with pytest.raises(Stopped, match="stopped after step 2; give the same command again"):
        NETWORK.network(other)
    assert NETWORK.steps_left(other) == 2
    resumed = NETWORK.network(other).state_dict()
    assert steps == [1, 2, 3, 4]
    assert all((whole[name] == tensor).all() for name, tensor in resumed.items())


def test_another_recipe_is_another_run(workspace):
    seeded = PaperDenoiser("fdncnn", "norm-equiv-residual", blind=True, seed=1)
    folders = {each.run_folder(workspace).name for each in (NETWORK, seeded)}
    assert len(folders) == 2
    assert all(name.startswith("tiny-fdncnn-norm-equiv-residual-blind") for name in folders)
    workspace.scale = Scale.SMALL
    assert NETWORK.run_folder(workspace).name not in folders


def test_given_weights_replace_training(workspace, tmp_path):
    workspace.weights = tmp_path / "weights"
    workspace.weights.mkdir()
    path = workspace.weights / f"{NETWORK.name}.safetensors"
    save(create("fdncnn", "norm-equiv-residual", width=4, depth=3), path, {"hours": 2.0})
    assert NETWORK.weights_file(workspace) == path
    assert NETWORK.steps_left(workspace) == 0
    assert NETWORK.curve(workspace) == []


def test_what_is_missing_is_one_sentence(workspace, tmp_path):
    workspace.runs = None
    with pytest.raises(Unavailable, match="has to be trained: give --runs"):
        NETWORK.network(workspace)
    workspace.runs, workspace.data = tmp_path / "runs", tmp_path / "empty"
    (tmp_path / "empty").mkdir()
    with pytest.raises(Unavailable, match="needs the set training or bsd400"):
        NETWORK.network(workspace)


def test_half_written_runs_are_one_sentence(workspace, recwarn):
    NETWORK.network(workspace)
    run = only(workspace.runs)
    (run / "best.safetensors").unlink()
    with pytest.raises(FileError, match="delete the folder to train again"):
        NETWORK.network(workspace)
    for checkpoint in (run / "checkpoints").iterdir():
        checkpoint.rename(checkpoint.with_name("step-000000002.safetensors"))
        checkpoint.with_name("step-000000002.safetensors").write_bytes(b"half of")
    with pytest.raises(FileError, match="only damaged checkpoints"):
        NETWORK.network(workspace)


def test_two_commands_do_not_train_one_network(workspace):
    run = NETWORK.run_folder(workspace)
    run.parent.mkdir()
    with locked(run), pytest.raises(BusyError):
        NETWORK.network(workspace)


def test_recipes_at_the_papers_scale_are_the_shipped_ones():
    for form in ("ordinary", "scale-equiv", "norm-equiv"):
        for blind in (True, False):
            each = PaperDenoiser("drunet", form, blind)
            same = {"description"}
            shipped = load_recipe(each.name).model_dump(exclude=same)
            assert each.recipe(Scale.PAPER).model_dump(exclude=same) == shipped
    telescoped = PaperDenoiser("drunet", "norm-equiv-telescoped", False).recipe(Scale.PAPER)
    assert telescoped.network.size == {"telescoped": True}
    assert telescoped.optimization.steps == 1_800_000


def test_the_repeated_row_has_three_seeds():
    listed = with_seeds(
        [PaperDenoiser("drunet", form, True) for form in ("ordinary", "norm-equiv")]
    )
    assert [each.seed for each in listed if each.form == "norm-equiv"] == list(SEEDS)
    assert [each.seed for each in listed if each.form == "ordinary"] == [0]
    reduced = reductions(listed, Scale.SMALL)
    assert any("steps=1000" in line for line in reduced)
    assert len(reduced) == len(set(reduced))


def test_the_time_left_is_told_from_what_was_measured(workspace):
    NETWORK.network(workspace)
    path = only(workspace.runs) / "best.safetensors"
    save(load(path), path, {"hours": 2.0})
    PaperDenoiser("fdncnn", "ordinary", blind=True).network(workspace)
    assert "network 2 of 2, about 2.0 hours left" in workspace.say.__self__[-1]
