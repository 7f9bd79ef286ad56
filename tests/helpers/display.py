"""A display for tests that open windows: the one there is, or a virtual one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def running_display(width: int = 1400, height: int = 900) -> Iterator[None]:
    """Make sure that windows can be opened, or skip the test."""
    linux = sys.platform.startswith("linux")
    if not linux and "CI" in os.environ:
        pytest.skip("machines of a CI may have no OpenGL; on Linux there is one in software")
    if not linux or "DISPLAY" in os.environ:
        yield
        return
    program = shutil.which("Xvfb")
    if program is None:
        pytest.skip("there is no display, and Xvfb, which would make one, is not installed")
    reading, writing = os.pipe()
    size = f"{width}x{height}x24"
    command = [program, "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as file:
            number = file.readline().strip()
        if not number:
            pytest.skip("Xvfb could not start a display")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DISPLAY", f":{number}")
            patch.setenv("LIBGL_ALWAYS_SOFTWARE", "1")
            yield
    finally:
        server.terminate()
        server.wait()
