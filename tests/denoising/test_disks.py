"""Outputs that other processes write too, full disks, and places where nothing can be written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from helpers.disks import small_disk
from helpers.image_samples import sample
from numpy.typing import NDArray

from normeq import images
from normeq._support import locking
from normeq.denoising.file_options import FileOptions
from normeq.denoising.files import outcomes
from normeq.denoising.outcome import Outcome
from normeq.denoising.preparation import Choice

SLOW = """
    import time

    def make():
        def slow(plane):
            time.sleep(0.1)
            return plane / 2
        return slow
"""


def run(path: Path, target: Path, model: Callable[..., Any], **options: Any) -> Outcome:
    [outcome] = outcomes([path], [target], Choice(model), FileOptions(**options))
    return outcome


def halved(plane: NDArray[Any]) -> NDArray[Any]:
    return plane / 2


def never(plane: NDArray[Any]) -> NDArray[Any]:
    pytest.fail("work has started")


def write_stack(path: Path, stack: NDArray[Any]) -> None:
    if path.suffix == ".zarr":
        zarr.create_array(path, data=stack, chunks=(1, *stack.shape[1:]))
    elif path.suffix == ".npy":
        np.save(path, stack)
    else:
        tifffile.imwrite(path, stack, photometric="minisblack")


@pytest.mark.parametrize("extension", [".tif", ".npy", ".zarr"])
def test_of_two_processes_one_writes(tmp_path: Path, extension: str) -> None:
    (tmp_path / "slow.py").write_text(textwrap.dedent(SLOW))
    stack = sample((12, 16, 16), "uint16")
    write_stack(tmp_path / f"in{extension}", stack)
    command = [sys.executable, "-m", "normeq", "denoise", "--model", "slow:make", "--overwrite"]
    command += [f"in{extension}", "-o", f"out{extension}"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate()[1].decode() for process in both]
    np.testing.assert_array_equal(images.read(tmp_path / f"out{extension}"), np.rint(stack / 2))
    # The one that started later finds the other at work, or, on a busy machine, finished.
    refused = [text for text, process in zip(said, both, strict=True) if process.returncode]
    assert len(refused) <= 1
    assert all("is being written by process" in text for text in refused)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


@pytest.mark.parametrize("extension", [".tif", ".npy", ".zarr"])
def test_an_output_that_is_being_written_is_refused_or_skipped(
    tmp_path: Path, extension: str
) -> None:
    path, target = tmp_path / f"in{extension}", tmp_path / f"out{extension}"
    write_stack(path, sample((2, 8, 8), "uint16"))
    with locking.locked(target):
        for existing in ("refuse", "overwrite"):
            outcome = run(path, target, never, existing=existing)
            assert f"out{extension} is being written by process" in str(outcome.error)
        assert run(path, target, never, existing="skip").status == "skipped"
    assert run(path, target, halved).status == "done"


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "1m") as folder:
        yield folder


@pytest.mark.parametrize("name", ["in.npy", "in.fits", "in.tif", "in.zarr"])
def test_a_full_disk_is_a_sentence_and_the_others_go_on(
    tmp_path: Path, small_disk: Path, name: str
) -> None:
    large = np.random.default_rng(0).integers(0, 2**15, (4, 512, 512)).astype(np.int16)
    if name == "in.fits":
        pytest.importorskip("astropy.io.fits").PrimaryHDU(large).writeto(tmp_path / name)
    else:
        write_stack(tmp_path / name, large)
    np.save(tmp_path / "little.npy", sample((8, 8), "uint8"))
    inputs = [tmp_path / name, tmp_path / "little.npy"]
    targets = [small_disk / name, small_disk / "little.npy"]
    first, second = outcomes(inputs, targets, Choice(halved), FileOptions())
    assert "cannot be written (No space left on device)" in str(first.error)
    assert not (small_disk / name).exists()
    if name != "in.zarr":  # of which a part stays, to go on from
        assert second.status == "done"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="only where room can be reserved")
def test_room_is_reserved_before_work_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    np.save(tmp_path / "in.npy", sample((8, 8), "uint8"))
    outcome = run(tmp_path / "in.npy", tmp_path / "out.npy", never)
    assert "cannot be written (No space left on device)" in str(outcome.error)


@pytest.mark.parametrize("extension", [".tif", ".npy", ".zarr"])
def test_a_place_that_is_read_only_is_reported_before_work_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str
) -> None:
    write_stack(tmp_path / f"in{extension}", sample((2, 8, 8), "uint16"))
    opened = os.open

    def read_only(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT and "out" in str(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", read_only)
    outcome = run(tmp_path / f"in{extension}", tmp_path / f"out{extension}", never)
    assert "cannot be written (Read-only file system)" in str(outcome.error)
