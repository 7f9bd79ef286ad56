"""The card of a model as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 96
_INDENT = "  "


def card_text(card: Mapping[str, Any]) -> str:
    """Return a card as indented sections with wrapped lines.

    Examples
    --------
    >>> print(card_text({"images": "400", "psnr": {"15": 30.4, "25": 27.9}, "widths": [4, 8]}))
    images: 400
    widths: 4, 8
    psnr
      15: 30.4
      25: 27.9
    """
    return "\n".join(_lines(card, ""))


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
        entries = [value] if isinstance(value, dict) else value
        for number, entry in enumerate(entries, 1):
            yield f"{indent}{_words(name)}{f' {number}' if len(entries) > 1 else ''}"
            yield from _lines(entry, indent + _INDENT)


def _is_section(value: object) -> bool:
    """Tell a table, or a list of tables, from a value."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, dict) for entry in value)
    return isinstance(value, dict) and bool(value)


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
