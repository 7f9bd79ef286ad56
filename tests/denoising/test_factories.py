"""Denoisers that are the user's own code, named as module:factory, and all that can go wrong."""

from pathlib import Path

import pytest

from normeq.denoising.names import resolve
from normeq.errors import UsageError

CODE = """
def fine():
    return lambda plane: plane

def fails():
    raise RuntimeError("no weights here")

def number():
    return 3

def needs(argument):
    return argument
"""


@pytest.fixture(autouse=True)
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_factories.py").write_text(CODE)
    (tmp_path / "my_broken_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("my_factories:fails", "my_factories:fails failed: RuntimeError: no weights here"),
        ("my_factories:number", "returned int, but a denoiser is a network or a function"),
        ("my_factories:needs", "could not be called without arguments"),
        ("my_factories:missing", "cannot be imported"),
        ("my_broken_module:make", "cannot be imported: division by zero"),
    ],
)
def test_what_a_factory_does_wrong_is_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        resolve(name)


def test_a_factory_makes_a_denoiser() -> None:
    assert resolve("my_factories:fine")(3) == 3
