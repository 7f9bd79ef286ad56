"""The table of equivariances: what is measured, and how it is laid out."""

from __future__ import annotations

import pytest

from normeq.equivariance import Deviation, Measurement
from normeq.reproduce import equivariance_table
from normeq.reproduce.equivariance_rows import TableEntry, entries
from normeq.reproduce.equivariance_table import Row, as_record, as_text, draw, measure

SLOW = {"WNNM", "WNNM, group means kept"}
PAPER = ["TV", "NLM", "NL-Ridge", "DCT", "BM3D", "WNNM"]
PAPER += ["DnCNN", "NLRN", "SwinIR", "Restormer", "DRUNet"]


def row(name: str, scale: float, shift: float, said: tuple[bool, bool], cause: str = "") -> Row:
    entry = TableEntry("Section", name, lambda: abs, True, said, cause)
    worst = {
        "scale": Deviation(scale, 10.0, 0.0),
        "shift": Deviation(shift, 1.0, -0.5),
        "norm": Deviation(max(scale, shift), 10.0, 0.0),
    }
    return Row(entry, Measurement(worst))


@pytest.fixture
def rows() -> list[Row]:
    return [
        row("sound", 1e-14, 1e-12, (True, True)),
        row("surprise", 1e-14, 1e-12, (True, False), "means are set aside"),
        row("riddle", 2.0, 1e-12, (True, True)),
    ]


def test_the_papers_columns_come_first() -> None:
    assert [entry.name for entry in entries()][: len(PAPER)] == PAPER


def test_names_are_unique() -> None:
    names = [(entry.section, entry.name) for entry in entries()]
    assert len(set(names)) == len(names)


def test_rows_agree_or_are_explained(rows: list[Row]) -> None:
    sound, surprise, riddle = rows
    assert sound.agrees
    assert sound.note == ""
    assert surprise.note == "means are set aside"
    assert riddle.holds == (False, True)
    assert riddle.note == "unexplained"


def test_layouts(rows: list[Row]) -> None:
    text = as_text(rows).splitlines()
    assert len(text) == 1 + len(rows)
    assert text[1].split() == ["sound", "✓", "1.0e-14", "✓", "1.0e-12", "✓", "✓", "yes"]
    assert text[3].endswith("no: unexplained")
    table = [as_record(row) for row in rows]
    assert table[1]["cause"] == "means are set aside"
    assert table[2]["scale"] == "no"
    assert table[0]["worst_offset"] == "-0.5"
    assert len(draw(rows).axes[0].texts) > 6 * len(rows)


@pytest.mark.parametrize(
    "entry", [s for s in entries() if s.name not in SLOW], ids=lambda entry: entry.name
)
def test_every_row_is_as_said(entry: TableEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivariance_table, "entries", lambda: [entry])
    [measured] = measure(side=24)
    assert measured.agrees, (measured.measured, measured.note)


@pytest.mark.slow
def test_the_whole_table() -> None:
    surprises = {row.entry.name: row.note for row in measure()}
    assert {name for name, note in surprises.items() if note} == {"WNNM"}
    assert "unexplained" not in surprises.values()
