"""How large a reproduction is."""

from __future__ import annotations

from enum import StrEnum


class Scale(StrEnum):
    """Size of an experiment: a trial of seconds, hours on a laptop, or as large as in the paper."""

    TINY = "tiny"
    SMALL = "small"
    PAPER = "paper"
