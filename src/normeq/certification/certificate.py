"""Certificates: what has been proven of a network, and what stands in the way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike

from normeq.certification.findings import Record
from normeq.certification.measurement import Counterexample, Range
from normeq.certification.shadow import PROPERTIES, Culprit, Property


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
    measured
        The worst relative error of each property, in double precision.
    counterexamples
        For each property that is broken, an image, a gain and an offset that show it.
    range
        The gains and offsets at which the law was found to hold in the network's number formats,
        for images of unit spread; None where nothing is proven.
    sizes
        The sizes of images that were covered.
    """

    scale: Status
    shift: Status
    culprits: tuple[Culprit, ...]
    bound: float
    records: tuple[Record, ...]
    measured: Mapping[Property, float] = field(default_factory=dict)
    counterexamples: Mapping[Property, Counterexample] = field(default_factory=dict)
    range: Range | None = None
    sizes: tuple[tuple[int, ...], ...] = ()

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
        for number, which in enumerate(PROPERTIES):
            if which in self.counterexamples:
                lines[number] += f", {_described(self.counterexamples[which])}"
            elif getattr(self, which) is Status.UNKNOWN and which in self.measured:
                lines[number] += f", measured error {self.measured[which]:.1e}"
        if self.range is not None:
            lines.append(f"for {self.range}, in units of the image's spread")
        if self.sizes:
            lines.append(f"at {', '.join(_size(size) for size in self.sizes)} pixels")
        if self.culprits:
            lines += ["", *_culprit_lines(self.culprits)]
        return "\n".join(lines)

    def draw(self, path: str | PathLike[str]) -> None:
        """Draw the network's operations, coloured by kind, into a picture file (PNG, PDF, SVG)."""
        from normeq.certification.certificate_drawing import draw

        draw(self, path)

    def __str__(self) -> str:
        return self.table()


def _described(found: Counterexample) -> str:
    change = f"gain {found.gain:g}" if found.gain != 1 else f"offset {found.offset:g}"
    return f"by {found.error:.1e} at {change}"


def _size(lengths: Sequence[int]) -> str:
    return "x".join(str(length) for length in lengths)


def _culprit_lines(culprits: Sequence[Culprit]) -> list[str]:
    """List culprits in columns, with those of one kind in one line, and the fixes below."""
    groups: dict[tuple[str, ...], list[Culprit]] = {}
    for culprit in culprits:
        where = re.sub(r"\d+", "*", culprit.path)
        why = re.sub(r"[-+.\de]*\d", "#", culprit.reason)
        key = (where, culprit.operation, culprit.property, why, culprit.fix)
        groups.setdefault(key, []).append(culprit)
    fixes = list(dict.fromkeys(culprit.fix for culprit in culprits))
    rows = [("module", "operation", "breaks", "fix", "why")]
    for (where, *_), members in groups.items():
        first, alone = members[0], len(members) == 1
        module = first.path or f"(network) {first.line}".strip()
        rows.append(
            (
                module if alone else f"{len(members)} layers: {where}",
                first.operation,
                first.property + (" ?" if first.unknown else ""),
                f"[{fixes.index(first.fix) + 1}]",
                first.reason,
            )
        )
    return [*_columns(rows), "", *(f"[{number}] {fix}" for number, fix in enumerate(fixes, 1))]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out rows in columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
