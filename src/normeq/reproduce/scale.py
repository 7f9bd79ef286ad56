"""How large a reproduction is."""

from __future__ import annotations

from enum import StrEnum


class Scale(StrEnum):
    """Size of an experiment: minutes on a laptop, or as large as in the paper."""

    SMALL = "small"
    PAPER = "paper"
