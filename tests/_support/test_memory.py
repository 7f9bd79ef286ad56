from __future__ import annotations

from pathlib import Path

import pytest

from normeq._support import memory


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
