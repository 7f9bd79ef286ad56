"""Names that are not known, and the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question that offers the most similar known name, or nothing if none is similar.

    >>> suggestion("defualt", ["default", "bm3d"])
    " Did you mean 'default'?"
    >>> suggestion("xyz", ["default", "bm3d"])
    ''
    """
    near = get_close_matches(name.lower(), list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
