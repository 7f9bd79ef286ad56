"""What is found by sending shadows through a network: the law of each operation's output."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from normeq.certification.shadow import Culprit, Property, Shadow


@dataclass(frozen=True)
class Record:
    """One operation of the traced network and what came out of it.

    Attributes
    ----------
    name, operation, path
        Its name in the graph, the operation, and the module it belongs to.
    inputs
        Names of the records it depends on.
    kind
        E, H, I, or what else its output is.
    shape
        The shape of its output.
    line
        Where the network's source calls it, if that is known.
    """

    name: str
    operation: str
    path: str
    inputs: tuple[str, ...]
    kind: str
    shape: tuple[int, ...]
    line: str = ""


@dataclass
class Propagation:
    """What was found by sending shadows through a network.

    Attributes
    ----------
    outputs
        Shadows of the network's outputs.
    records
        Every operation.
    still
        For each linear layer, by its path, which channels of its input scale with the image but
        do not move with the offset.
    deviation
        By how much coefficients that count as exact were off, summed over all operations.
    formats
        The floating-point formats in which something was computed.
    """

    outputs: list[Shadow] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    still: dict[str, Tensor] = field(default_factory=dict)
    deviation: float = 0.0
    formats: set[torch.dtype] = field(default_factory=set)

    def culprits(self, which: Property) -> list[Culprit]:
        """List what broke a property on the way to the outputs, in the network's order."""
        found = {culprit for output in self.outputs for culprit in output.history(which).blame}
        return sorted(found, key=lambda culprit: (culprit.order, culprit.reason))
