"""How much memory there is, without a dependency to ask for it."""

from __future__ import annotations

import os
from pathlib import Path

_GUESS = 4 * 2**30


def available() -> int:
    """Return the bytes of memory that can be used without swapping, or a modest guess."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError, AttributeError):
        return _GUESS
