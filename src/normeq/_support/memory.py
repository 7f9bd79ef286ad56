"""How much memory there is, found without a dependency."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_GUESS = 4 * 2**30
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Where the two versions of control groups keep the limit, its use, and the use that can be dropped.
_VERSIONS = {
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "": ("", "memory.max", "memory.current", "inactive_file"),
}


def available() -> int:
    """Return the bytes of memory that can be used without swapping, or a modest guess.

    A container or a batch job has no more than its control group allows.
    """
    return max(0, min([_left_on_the_machine(), *_left_to_groups()]))


def _left_on_the_machine() -> int:
    try:
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError, AttributeError):
        return _GUESS


def _left_to_groups() -> Iterator[int]:
    """Yield what each control group around this process may still use, where it is limited."""
    try:
        lines = (_PROC / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controller, group = line.split(":", 2)
        if controller in _VERSIONS:
            root, *files = _VERSIONS[controller]
            inner = PurePosixPath(group.lstrip("/"))
            for path in (inner, *inner.parents):
                with contextlib.suppress(OSError, ValueError):  # not visible, or "max"
                    yield _left_to_group(_GROUPS / root / path, *files)


def _left_to_group(folder: Path, limit: str, used: str, droppable: str) -> int:
    allowed, taken = (int((folder / name).read_text()) for name in (limit, used))
    statistics = (folder / "memory.stat").read_text().split()
    return allowed - taken + int(statistics[statistics.index(droppable) + 1])
