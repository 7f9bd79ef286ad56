"""The guides are true: every Python snippet of a page runs, in order, and prints what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# A snippet, and the block without a language that may follow it: what it prints.
SNIPPET = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n^```\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL
)
END = "---- end of snippet ----"
# Figures that may differ from one machine to another; counts may not.
FIGURE = re.compile(r"-?\d+(\.\d+)?e[+-]\d+|-?\d+\.\d+")


def snippets(page: Path) -> list[re.Match[str]]:
    """Return the Python blocks of a page."""
    return list(SNIPPET.finditer(page.read_text(encoding="utf-8")))


PAGES = [page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if snippets(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    found = snippets(page)
    program = tmp_path / "page.py"
    ends = f"print({END!r})\n"
    program.write_text("".join(each["code"] + ends for each in found), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    for each, printed in zip(found, run.stdout.split(f"{END}\n"), strict=False):
        if each["printed"] is not None:
            assert FIGURE.sub("#", printed) == FIGURE.sub("#", each["printed"])
