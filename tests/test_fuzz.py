"""Damaged files of every kind: a few hundred of the mutants that benchmarks/fuzz.py makes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.file_samples import SAMPLES, write_sample

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import fuzz

MUTANTS = 12


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SAMPLES)
def test_damage_gives_a_result_or_a_sentence(tmp_path: Path, kind: str) -> None:
    original = tmp_path / "original" / kind
    original.parent.mkdir()
    try:
        write_sample(original)
    except ImportError as error:
        pytest.skip(f"needs {error.name}")
    for number in range(MUTANTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, path = fuzz.mutant({kind: original}, folder, seed=7, number=number)
        outcome, text = fuzz.outcome_of(path)
        assert outcome in ("done", "refused"), f"mutant {number}: {outcome}: {text}"


def test_the_fuzzer_notices_what_it_looks_for(tmp_path: Path) -> None:
    from normeq.errors import FileError

    def masked(path: Path) -> tuple[str, str]:
        try:
            raise ZeroDivisionError("Fraction(0, 0)")
        except ZeroDivisionError as error:
            raise FileError(f"{path}: cannot be read ({error}).") from error

    def broken(path: Path) -> tuple[str, str]:
        raise KeyError("x")

    fuzz.CONSUMERS[".masked"], fuzz.CONSUMERS[".broken"] = masked, broken
    assert fuzz.outcome_of(tmp_path / "a.masked")[0] == "masked"
    assert fuzz.outcome_of(tmp_path / "a.broken")[0] == "traceback"
