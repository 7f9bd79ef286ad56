"""What a request asks for, checked word by word: it is hostile until then."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from normeq.errors import UsageError, printable

# No number that the page sends is longer.
_LONGEST = 40


class Query:
    """The words of a request, each taken within its limits.

    Examples
    --------
    >>> Query({"row": "7"}).integer("row", 9)
    7
    >>> Query({"row": "1e9"}).integer("row", 9)
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: row is '1e9': it must be a whole number from 0 to 9.
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def integer(self, name: str, most: int) -> int:
        """Return a whole number from 0 to `most`; 0 if it is missing."""
        word = self._word(name, "0")
        if word.isascii() and word.isdigit() and int(word) <= most:
            return int(word)
        raise UsageError(f"{name} is {word!r}: it must be a whole number from 0 to {most}.")

    def number(self, name: str, low: float, high: float, otherwise: float) -> float:
        """Return a number within limits, or `otherwise` if it is missing."""
        number = self.optional(name, low, high)
        return otherwise if number is None else number

    def optional(self, name: str, low: float, high: float) -> float | None:
        """Return a number within limits, or None if it is missing."""
        word = self._word(name, "")
        if not word:
            return None
        try:
            number = float(word)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise UsageError(f"{name} is {word!r}: it must be a number from {low:g} to {high:g}.")
        return number

    def choice(self, name: str, known: Collection[str], otherwise: str) -> str:
        """Return one of some words."""
        word = self._words.get(name, otherwise)
        if word not in known:
            raise UsageError(
                f"{name} is {printable(word[:_LONGEST])!r}, which is not one of the choices."
            )
        return word

    def _word(self, name: str, otherwise: str) -> str:
        word = printable(self._words.get(name, otherwise))
        if len(word) > _LONGEST:
            raise UsageError(f"{name} is {len(word)} characters long: it must be a number.")
        return word
