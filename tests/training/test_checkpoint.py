from __future__ import annotations

import os

import pytest
import torch

from normeq.errors import FileError
from normeq.training import checkpoint
from normeq.training.checkpoint import Checkpoint


def some(step: int) -> Checkpoint:
    tensors = {
        "network.weight": torch.randn(3, 4, 2, 2).to(memory_format=torch.channels_last),
        "network.count": torch.tensor(step),
        "average.weight": torch.randn(5, dtype=torch.float64),
        "random": torch.arange(9, dtype=torch.uint8),
        "empty": torch.zeros(0),
    }
    return Checkpoint(tensors, {"step": step, "best": 31.4159, "network": {"widths": [8, 16]}})


def test_what_was_written_is_read_bit_for_bit(tmp_path):
    written = some(7)
    read = checkpoint.read(checkpoint.write(tmp_path, 7, written))
    assert read.values == written.values
    assert read.tensors.keys() == written.tensors.keys()
    for name, tensor in written.tensors.items():
        assert read.tensors[name].dtype == tensor.dtype
        assert torch.equal(read.tensors[name], tensor)
    assert read.part("network").keys() == {"weight", "count"}


def test_the_newest_two_are_kept(tmp_path):
    for step in (5, 50, 500, 1_000_000_000):
        checkpoint.write(tmp_path, step, some(step))
    assert [checkpoint.read(path).values["step"] for path in checkpoint.stored(tmp_path)] == [
        1_000_000_000,
        500,
    ]
    assert not list(tmp_path.glob("*.partial"))


def test_a_damaged_later_one_takes_the_place_of_none(tmp_path):
    for step in (10, 20, 15):
        checkpoint.write(tmp_path, step, some(step))
    assert [path.stem for path in checkpoint.stored(tmp_path)] == [
        "step-000000015",
        "step-000000010",
    ]


@pytest.mark.parametrize("place", [0, 3, 20, 150, 0.5, 0.9, -1])
def test_any_damaged_byte_is_noticed_and_the_one_before_taken(tmp_path, place):
    checkpoint.write(tmp_path, 1, some(1))
    path = checkpoint.write(tmp_path, 2, some(2))
    content = bytearray(path.read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 0x10
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="step-000000002.*damaged.*Falling back"):
        assert checkpoint.newest(tmp_path).values["step"] == 1


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_truncated_checkpoint_is_passed_over(tmp_path, length):
    checkpoint.write(tmp_path, 1, some(1))
    path = checkpoint.write(tmp_path, 2, some(2))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.warns(UserWarning, match="damaged"):
        assert checkpoint.newest(tmp_path).values["step"] == 1


def test_a_write_that_dies_leaves_the_newest_whole(tmp_path, monkeypatch):
    checkpoint.write(tmp_path, 1, some(1))

    def die(descriptor: int) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", die)
        with pytest.raises(OSError, match="no space"):
            checkpoint.write(tmp_path, 2, some(2))
    assert checkpoint.newest(tmp_path).values["step"] == 1


def test_nothing_to_resume_from_is_said(tmp_path):
    with pytest.raises(FileError, match="contains no checkpoint"):
        checkpoint.newest(tmp_path)
    checkpoint.write(tmp_path, 1, some(1)).write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(FileError, match="contains only damaged checkpoints"),
    ):
        checkpoint.newest(tmp_path)
