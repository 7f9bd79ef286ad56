from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import sample


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_leaves_no_file_and_says_how_to_go_on(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    np.save(tmp_path / "a.npy", sample((1000, 1000), "float32"))
    command = [sys.executable, "-m", "normeq", "denoise", "a.npy", "--model", "wnnm"]
    running = subprocess.Popen(
        [*command, "--sigma", "20"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.glob(".*.partial")):  # until the result is being written
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    _, said = running.communicate(timeout=120)
    assert running.returncode == code, said
    assert "normeq: stopped; every result that was written is complete; " in said
    assert "--skip-existing" in said
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
