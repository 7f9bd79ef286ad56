"""Certificates: what has been proven of a network, and what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from os import PathLike

from normeq.certification.propagation import Record
from normeq.certification.shadow import Culprit


class Status(Enum):
    """What is known of a property; to be compared, as in ``is Status.PROVEN``."""

    PROVEN = "proven"
    BROKEN = "broken"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError(
            f"a status is not true or false: compare it, as in `status is Status.PROVEN` "
            f"(this one is {self.value})."
        )

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Certificate:
    """What `certify` found out about a network.

    Attributes
    ----------
    scale
        Whether ``f(λ·y, λ·σ) = λ·f(y, σ)`` for every gain λ > 0.
    shift
        Whether ``f(y + μ, σ) = f(y, σ) + μ`` for every offset μ.
    culprits
        The operations that break a property, or of which nothing is known, in order.
    bound
        What rounding may add to the offset law, where it is proven:
        ``|f(y + μ) - f(y) - μ| ≤ bound·(|μ| + 1)`` for images of unit spread. It follows from the
        kernel sums as they are stored and from the precision of the network's numbers, sent
        through the network with a random image, with room by a factor of 16. Infinite where the
        law is not proven.
    records
        Every operation with the kind of its output.
    """

    scale: Status
    shift: Status
    culprits: tuple[Culprit, ...]
    bound: float
    records: tuple[Record, ...]

    @property
    def norm(self) -> Status:
        """Whether ``f(λ·y + μ, λ·σ) = λ·f(y, σ) + μ``: both properties at once."""
        for status in (Status.BROKEN, Status.UNKNOWN):
            if status in (self.scale, self.shift):
                return status
        return Status.PROVEN

    def table(self) -> str:
        """Return the certificate as text for people."""
        lines = [f"{name:<6} {getattr(self, name)}" for name in ("scale", "shift", "norm")]
        if self.shift is Status.PROVEN:
            lines[1] += f", within {self.bound:.1e} of the offset"
        if self.culprits:
            fixes = list(dict.fromkeys(culprit.fix for culprit in self.culprits))
            head = ("module", "operation", "breaks", "fix", "why")
            rows = [
                (
                    culprit.path or "(network)",
                    culprit.operation,
                    culprit.property + (" ?" if culprit.unknown else ""),
                    f"[{fixes.index(culprit.fix) + 1}]",
                    culprit.reason,
                )
                for culprit in self.culprits
            ]
            lines += ["", *_columns([head, *rows]), ""]
            lines += [f"[{number}] {fix}" for number, fix in enumerate(fixes, 1)]
        return "\n".join(lines)

    def draw(self, path: str | PathLike[str]) -> None:
        """Draw the network's operations, coloured by kind, into a picture file (PNG, PDF, SVG)."""
        from normeq.certification.drawing import draw

        draw(self, path)

    def __str__(self) -> str:
        return self.table()


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out rows in columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
