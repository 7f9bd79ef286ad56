"""What a conversion changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from normeq.certification import Certificate


@dataclass(frozen=True)
class Change:
    """One replaced layer or operation: where it is, what it was, and what it is now."""

    path: str
    was: str
    now: str


@dataclass(frozen=True)
class ConversionReport:
    """What `convert` did to a network.

    Attributes
    ----------
    to
        The variant converted to.
    changes
        Every change, in the order they were made.
    parameters
        How many parameters there were before, and are now.
    moved
        How far the output has moved on the example: root mean square, in spreads of the
        original's output.
    certificate
        The certificate of the twin in eval mode, in which the variant's properties are proven.
    shapes
        The shapes of the example's tensors.
    norms_in_training
        Paths of the norms of the network that were in training mode, with running statistics.
    in_training
        If there are any, and the example is large enough for them, the certificate of the twin in
        training mode, which proves the same.
    """

    to: str
    changes: tuple[Change, ...]
    parameters: tuple[int, int]
    moved: float
    certificate: Certificate
    shapes: tuple[tuple[int, ...], ...] = ()
    norms_in_training: tuple[str, ...] = ()
    in_training: Certificate | None = None

    def table(self) -> str:
        """Return the report as text for people."""
        counts = Counter((change.was, change.now) for change in self.changes)
        before, after = self.parameters
        lines = [f"converted to {self.to}: {before:,} parameters before, {after:,} now"]
        lines += [f"{count:4d} x  {was}  ->  {now}" for (was, now), count in counts.items()]
        lines.append(f"the output moved by {self.moved:.2g} of its spread")
        if self.in_training is not None:
            lines.append("proven in training mode, too, with the statistics of batches")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()
