"""How far a network looks: exact arithmetic on the chain of its spatial operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class SpatialStep(NamedTuple):
    """One spatial operation on the longest path of a network.

    A centered kernel that reaches `amount` cells to each side, or a change of resolution by the
    factor `amount`, each cell of the coarse grid being made of, or giving, a block of the fine.
    """

    kind: Literal["kernel", "down", "up"]
    amount: int


def reach(path: Sequence[SpatialStep]) -> int:
    """Return the largest distance, along an axis, between an output and an input it depends on.

    Examples
    --------
    >>> reach([SpatialStep("kernel", 1)] * 20)
    20
    >>> reach([SpatialStep("down", 2), SpatialStep("kernel", 1), SpatialStep("up", 2)])
    3
    """
    period = 1
    for step in path:
        period *= step.amount if step.kind == "down" else 1
    return max(_reach_from(position, path) for position in range(period))


def _reach_from(position: int, path: Sequence[SpatialStep]) -> int:
    first = last = position
    for kind, amount in reversed(path):
        if kind == "kernel":
            first, last = first - amount, last + amount
        elif kind == "up":
            first, last = first // amount, last // amount
        else:
            first, last = first * amount, last * amount + amount - 1
    return max(position - first, last - position)
