"""Limits on the sizes of networks, so that a damaged or hostile header costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from normeq.errors import UsageError

#: The largest value of each size.
LIMITS = {
    "channels": 4096,
    "width": 65_536,
    "widths": 65_536,
    "hidden": 65_536,
    "classes": 65_536,
    "image_size": 4096,
    "depth": 1024,
    "blocks": 64,
    "unshuffle": 16,
}
#: Sizes that may be lists, and the most numbers they have: one for each scale, layer or stage.
MOST_NUMBERS = {"widths": 8, "blocks": 15}


def check_sizes(options: Mapping[str, Any]) -> None:
    """Refuse sizes that are not whole numbers from 1 up to their limit.

    In a list of blocks a number may be 0: not every stage needs some.

    Examples
    --------
    >>> check_sizes({"widths": (16, 10**9), "sort": True})
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: widths is (16, 1000000000): use whole numbers from 1 to 65536.
    """
    for name, limit in LIMITS.items():
        if name in options:
            _check_size(name, options[name], limit)


def _check_size(name: str, value: Any, limit: int) -> None:
    several = name == "widths" or (name == "blocks" and isinstance(value, list | tuple))
    if several:
        most = MOST_NUMBERS[name]
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= most:
            raise UsageError(f"{name} is {_short(value)}: use a list of 1 to {most} numbers.")
    least = 0 if name == "blocks" and several else 1
    for number in value if several else [value]:
        if type(number) is not int or not least <= number <= limit:
            expected = "whole numbers" if several else "a whole number"
            raise UsageError(f"{name} is {_short(value)}: use {expected} from {least} to {limit}.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
