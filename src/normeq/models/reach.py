"""How far a network looks: exact arithmetic on the chain of its spatial operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class Step(NamedTuple):
    """One spatial operation on the longest path of a network.

    A centered kernel that reaches `amount` cells to each side, or a change of resolution by the
    factor `amount`, each cell of the coarse grid being made of, or giving, a block of the fine.
    """

    kind: Literal["kernel", "down", "up"]
    amount: int


def reach(path: Sequence[Step]) -> int:
    """Return the largest distance, along an axis, between an output and an input it depends on.

    Examples
    --------
    >>> reach([Step("kernel", 1)] * 20)
    20
    >>> reach([Step("down", 2), Step("kernel", 1), Step("up", 2)])
    3
    """
    period = 1
    for step in path:
        period *= step.amount if step.kind == "down" else 1
    return max(_reach_from(position, path) for position in range(period))


def _reach_from(position: int, path: Sequence[Step]) -> int:
    first = last = position
    for kind, amount in reversed(path):
        if kind == "kernel":
            first, last = first - amount, last + amount
        elif kind == "up":
            first, last = first // amount, last // amount
        else:
            first, last = first * amount, last * amount + amount - 1
    return max(position - first, last - position)
