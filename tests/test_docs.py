"""The guides are true: every Python snippet of a page runs, in order, one page at a time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(page: Path) -> list[str]:
    """Return the Python blocks of a page."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


PAGES = [page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if snippets(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join(snippets(page)), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
