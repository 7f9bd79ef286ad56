from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from normeq import memory

FAULTS = """
import resource, torch
from normeq import memory
if {keep}:
    memory.keep_freed()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):  # until the blocks of this size have found their places
    torch.ones(10_000_000)
before = faults()
for _ in range(10):
    torch.ones(10_000_000)
print(faults() - before)
"""


def page_faults(keep: bool) -> int:
    """Count the pages that a process gets from the system for ten tensors of 40 MB in turn."""
    program = [sys.executable, "-c", FAULTS.format(keep=keep)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


def test_some_memory_is_available() -> None:
    assert memory.available() > 0


@pytest.mark.parametrize(
    ("line", "root", "limit", "used", "droppable", "unlimited"),
    [
        ("0::/jobs/7", "", "memory.max", "memory.current", "inactive_file", "max"),
        (
            "4:memory:/jobs/7",
            "memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
            str(2**63 - 4096),
        ),
    ],
)
def test_a_batch_job_has_what_its_groups_leave_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    root: str,
    limit: str,
    used: str,
    droppable: str,
    unlimited: str,
) -> None:
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    (tmp_path / "self/cgroup").write_text(f"3:cpu:/\n{line}\n")
    outer, inner = (tmp_path / "groups" / root / path for path in ("jobs", "jobs/7"))
    inner.mkdir(parents=True)

    def allow(folder: Path, amount: str) -> None:
        for name, text in ((limit, amount), (used, "3000"), ("memory.stat", f"{droppable} 500\n")):
            (folder / name).write_text(text)

    assert memory.available() == 8000 * 1024  # no group is visible
    allow(outer, "9500")
    allow(inner, unlimited)
    assert memory.available() == 7000
    allow(inner, "4000")
    assert memory.available() == 1500


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only the C library of Linux")
def test_kept_memory_is_not_fetched_again() -> None:
    assert page_faults(keep=True) < page_faults(keep=False) / 10
