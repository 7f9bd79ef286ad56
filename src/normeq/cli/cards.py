"""The card of a model as text for people: its last stage of training, and a line for each other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 96
_INDENT = "  "


def card_text(card: Mapping[str, Any]) -> str:
    """Return a card as indented sections with wrapped lines.

    Of earlier recipes of the run only the differences are shown, and of earlier stages a line
    each: `normeq.load(name).card` has everything.

    Examples
    --------
    >>> print(card_text({"images": "400", "psnr": {"15": 30.4, "25": 27.9}, "widths": [4, 8]}))
    images: 400
    widths: 4, 8
    psnr
      15: 30.4
      25: 27.9
    """
    told_below = {"earlier"} if _is_section(card.get("earlier")) else set()
    if len(history(card)) > 1:
        told_below.add("started_from")
    shown = {name: value for name, value in card.items() if name not in told_below}
    sections = [*_lines(shown, ""), *_other_recipes(card), *_stages_before(card)]
    return "\n".join(sections)


def history(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the cards of all stages of training, the last stage first.

    Examples
    --------
    >>> [stage["steps"] for stage in history({"steps": 50, "started_from": {"steps": 900}})]
    [50, 900]
    """
    stages = [card]
    while isinstance(before := stages[-1].get("started_from"), Mapping):
        stages.append(before)
    return stages


def _other_recipes(card: Mapping[str, Any]) -> Iterator[str]:
    """Say what was different in recipes that the run followed before."""
    latest = _fields(card.get("recipe"))
    for other in _tables(card.get("earlier")):
        yield f"until step {_value(other.get('until'))}"
        for name, value in _fields(other.get("recipe")).items():
            if latest.get(name) != value:
                yield f"{_INDENT}{name}: {_value(value)}"


def _stages_before(card: Mapping[str, Any]) -> Iterator[str]:
    """Describe each of the weights that others started from, the latest first."""
    stages = history(card)[1:]
    if stages:
        yield "stages before, the latest first"
    for stage in stages:
        scores = [
            f"{_value(value)} dB at {name}"
            for name, value in _fields(stage.get("validation_psnr")).items()
            if name.isdigit()
        ]
        about = [f"{_value(stage[name])} {name}" for name in ("steps", "hours") if name in stage]
        pruned = [f"pruned: {_value(stage['pruned'])}"] if "pruned" in stage else []
        yield f"{_INDENT}{', '.join([*about, *scores, *pruned]) or 'nothing is known'}"


def _fields(section: object, path: str = "") -> dict[str, Any]:
    """Return the values of nested sections by their full names."""
    found: dict[str, Any] = {}
    for name, value in section.items() if isinstance(section, Mapping) else ():
        full = f"{path}{_words(name)}"
        found |= _fields(value, f"{full}, ") if isinstance(value, Mapping) else {full: value}
    return found


def _lines(section: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Write what fits on a line first, then the sections, short ones before long ones."""
    inner = {name: value for name, value in section.items() if _is_section(value)}
    for name, value in section.items():
        if name not in inner:
            yield from textwrap.wrap(
                f"{_words(name)}: {_value(value)}",
                _WIDTH,
                initial_indent=indent,
                subsequent_indent=indent + 2 * _INDENT,
            )
    for name, value in sorted(inner.items(), key=lambda item: len(str(item[1]))):
        entries = _tables(value)
        for number, entry in enumerate(entries, 1):
            yield f"{indent}{_words(name)}{f' {number}' if len(entries) > 1 else ''}"
            yield from _lines(entry, indent + _INDENT)


def _is_section(value: object) -> bool:
    """Tell a table, or a list of tables, from a value."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, dict) for entry in value)
    return isinstance(value, dict) and bool(value)


def _tables(value: Any) -> list[dict[str, Any]]:
    """Return the tables of a section: none for a value."""
    if not _is_section(value):
        return []
    return [value] if isinstance(value, dict) else value


def _words(name: str) -> str:
    return str(name).replace("_", " ")


def _value(value: object) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
