from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.paper_sets import write_sets

from normeq.errors import FileError
from normeq.reproduce import classifiers
from normeq.reproduce.classifiers import Classifier, error_rate
from normeq.reproduce.digits import LabelledImages, read_digits
from normeq.reproduce.scale import Scale
from normeq.reproduce.workspace import Unavailable, Workspace
from normeq.training import Stopped, checkpoint

CLASSIFIER = Classifier("norm-equiv", "mnist")


def workspace(folder: Path, data: Path) -> Workspace:
    return Workspace(folder, Scale.TINY, data, folder / "runs", say=lambda _: None)


def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    data = write_sets(tmp_path / "data", "mnist")
    whole = CLASSIFIER.network(workspace(tmp_path / "a", data))
    assert [step for step, _ in whole.card["errors"]] == [1, 2, 3, 4]
    update, steps = classifiers._Training._update, []

    def counted(self):
        steps.append(self.step)
        update(self)
        if steps == [0, 1]:
            self._save()
            raise Stopped("asked to stop")

    monkeypatch.setattr(classifiers._Training, "_update", counted)
    other = workspace(tmp_path / "b", data)
    with pytest.raises(Stopped):
        CLASSIFIER.network(other)
    torch.manual_seed(123)  # what follows is in the checkpoint
    resumed = CLASSIFIER.network(other)
    assert steps == [0, 1, 2, 3]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_the_papers_note_is_followed():
    plain, norm = (Classifier(v, "mnist").settings(Scale.PAPER) for v in ("ordinary", "norm-equiv"))
    assert (plain.rate, norm.rate) == (5e-4, 3e-5)
    assert norm.dropout == plain.dropout / 2
    names = {Classifier("ordinary", "mnist", seed).recipe_text(Scale.SMALL) for seed in (0, 1)}
    assert len(names) == 2


def test_errors_are_counted():
    net = Classifier("scale-equiv", "mnist").create(Scale.TINY, 28)
    images = np.random.default_rng(0).integers(0, 256, (30, 28, 28), np.uint8)
    found = classifiers.labels_of(net, classifiers.as_tensor(images)).numpy()
    assert error_rate(net, LabelledImages(images, found)) == 0
    assert error_rate(net, LabelledImages(images, (found + 1) % 10)) == 1


def test_learning_lowers_the_error(tmp_path, monkeypatch):
    """Two kinds of images that anybody can tell apart."""
    images = np.zeros((64, 28, 28), np.uint8)
    images[::2, :14], images[1::2, 14:] = 200, 200
    digits = LabelledImages(images, np.arange(64) % 2)
    monkeypatch.setattr(classifiers, "read_digits", lambda folder, part: digits)
    settings = classifiers.Settings((8,) * 6, 16, 40, 16, 2e-3, 0.0, 40)
    monkeypatch.setattr(Classifier, "settings", lambda self, scale: settings)
    (tmp_path / "data" / "mnist").mkdir(parents=True)
    net = CLASSIFIER.network(workspace(tmp_path, tmp_path / "data"))
    assert error_rate(net, digits) == 0
    assert checkpoint.stored(next(iter((tmp_path / "runs").iterdir())) / "checkpoints")


def test_idx_and_npz_files_are_read(tmp_path):
    folder = write_sets(tmp_path, "mnist") / "mnist"
    train = read_digits(folder, "train")
    assert train.images.shape == (24, 28, 28)
    assert train.labels.max() <= 9
    (tmp_path / "npz").mkdir()
    np.savez(tmp_path / "npz" / "some_train.npz", images=train.images, labels=train.labels)
    again = read_digits(tmp_path / "npz", "train")
    np.testing.assert_array_equal(again.images, train.images)
    with pytest.raises(Unavailable, match="neither idx files of its test images nor an npz"):
        read_digits(tmp_path / "npz", "test")


def test_damaged_files_are_one_sentence(tmp_path):
    folder = write_sets(tmp_path, "mnist") / "mnist"
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"not gzip")
    with pytest.raises(FileError, match="cannot be read as an idx file"):
        read_digits(folder, "test")
    images = folder / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(FileError, match="cannot be read as an idx file"):
        read_digits(folder, "train")
