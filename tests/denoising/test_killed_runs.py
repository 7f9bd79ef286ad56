"""Runs that are killed: no partial file, and a Zarr goes on where it stopped."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from helpers.image_samples import sample
from numpy.typing import NDArray

from normeq import images
from normeq.denoising.files import denoise_files
from normeq.denoising.outcome import Outcome

SLOW = """
    import time

    def make():
        def slow(plane):
            with open("log.txt", "a") as log:
                log.write("plane\\n")
            time.sleep(0.1)
            return plane / 2
        return slow
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "normeq", "denoise", "--model", "slow:make", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def kill_when(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not ready() and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


def planes_done(folder: Path) -> int:
    log = folder / "log.txt"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_run_leaves_no_file_and_a_zarr_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(textwrap.dedent(SLOW))
    stack = sample((12, 16, 16), "uint16")
    tifffile.imwrite(tmp_path / "in.tif", stack, photometric="minisblack")
    kill_when(start(tmp_path, "in.tif"), lambda: planes_done(tmp_path) >= 4)
    assert not (tmp_path / "in.denoised.tif").exists()

    (tmp_path / "log.txt").unlink()
    zarr.create_array(tmp_path / "in.zarr", data=stack, chunks=(1, 8, 8))
    kill_when(start(tmp_path, "in.zarr"), lambda: planes_done(tmp_path) >= 6)
    partial = tmp_path / ".in.denoised.zarr.partial"
    assert partial.exists()
    assert not (tmp_path / "in.denoised.zarr").exists()

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    [outcome] = denoise_files("in.zarr", model="slow:make")
    assert outcome.resumed
    # The plane that was being done when the kill came is done again, the others are not.
    assert 12 <= planes_done(tmp_path) <= 13
    np.testing.assert_array_equal(images.read(tmp_path / "in.denoised.zarr"), np.rint(stack / 2))
    assert not partial.exists()


def run(path: Path, target: Path, model: Callable[..., Any], **options: Any) -> Outcome:
    [outcome] = denoise_files(path, target, model=model, **options)
    return outcome


def test_a_zarr_goes_on_only_with_the_same_model_and_options(tmp_path: Path) -> None:
    stack = sample((6, 16, 16), "uint16")
    zarr.create_array(tmp_path / "in.zarr", data=stack, chunks=(1, 8, 8))
    calls = 0

    def failing(plane: NDArray[Any]) -> NDArray[Any]:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return plane / 2

    target = tmp_path / "out.zarr"
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "in.zarr", target, failing)
    assert not target.exists()
    outcome = run(tmp_path / "in.zarr", target, failing)
    assert outcome.resumed
    assert calls == 4 + 3

    calls = 0
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "in.zarr", target, failing, existing="overwrite")
    outcome = run(tmp_path / "in.zarr", target, failing, existing="overwrite", nan="keep")
    assert not outcome.resumed
    assert calls == 4 + 6
    np.testing.assert_array_equal(images.read(target), np.rint(stack / 2))
