from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from normeq._support.locking import locked
from normeq.errors import BusyError, FileError

HOLD = """
import sys, time
from pathlib import Path
from normeq._support.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of `a.tif`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "a.tif")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_owner_is_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with (
        pytest.raises(BusyError, match=rf"a\.tif is being written by process {holder.pid} on "),
        locked(tmp_path / "a.tif"),
    ):
        pytest.fail("it is held")
    with locked(tmp_path / "b.tif"):
        assert (tmp_path / ".b.tif.lock").exists()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_the_lock_of_a_killed_process_is_stale(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / ".a.tif.lock").exists()
    with locked(tmp_path / "a.tif"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_failure_lets_go(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), locked(tmp_path / "a.tif"):
        raise ValueError("mine")
    with locked(tmp_path / "a.tif"):
        pass


def test_nowhere_to_write_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"), locked(tmp_path / "no" / "a.tif"):
        pytest.fail("there is nowhere to write")
