"""What is known of a tensor inside a network: how it answers to gain and offset of the input.

When the input becomes ``λ·x + μ``, an element ``t`` of any tensor inside the network becomes
``λ^d·t + c·μ``: `d` is its scale degree and `c` its shift coefficient. A `Shadow` holds both for
every element, so that the network's own operations, run on shadows, carry them along exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

Property = Literal["scale", "shift"]

#: The degree of zeros and infinities, which no gain changes: it agrees with every other degree.
ANY = math.inf

#: How many times the estimated rounding a coefficient may be off and still count as exact.
SAFETY = 16.0

#: No deviation beyond this counts as rounding, however deep the network.
LARGEST_ROUNDING = 1e-3


@dataclass(frozen=True)
class Culprit:
    """An operation that breaks a property, or of which nothing is known.

    Attributes
    ----------
    path
        The module in which it happens, as in `named_modules`; empty for the outermost one.
    operation
        The operation's name in PyTorch.
    property
        What it breaks.
    reason
        Why, in one sentence.
    fix
        What would fix it.
    unknown
        Whether the operation is beyond the certificate's knowledge, rather than known to break.
    """

    path: str
    operation: str
    property: Property
    reason: str
    fix: str
    unknown: bool = False
    order: int = field(default=0, compare=False)


@dataclass(frozen=True)
class History:
    """What happened to one property on the way to a tensor.

    `suspects` made a coefficient that is lawful by itself but that something later may not bear,
    such as kernels that do not sum to one.
    """

    blame: frozenset[Culprit] = frozenset()
    suspects: frozenset[Culprit] = frozenset()

    def __or__(self, other: History) -> History:
        return History(self.blame | other.blame, self.suspects | other.suspects)


@dataclass(frozen=True)
class Weights:
    """Marks elements that belong to groups of `size`, each summing to one (softmax).

    `debt` marks weights that have been multiplied by features that follow the offset: lawful
    once they are summed over whole groups, and else the culprit's fault.
    """

    group: Tensor
    member: Tensor
    size: int
    debt: Culprit | None = None

    def complete_along(self, axis: int) -> bool:
        """Whether every line along `axis` is one whole group."""
        if self.group.shape[axis] != self.size:
            return False
        one_group = self.group.amin(axis) == self.group.amax(axis)
        distinct = self.member.sort(axis).values.diff(dim=axis) > 0
        return bool(one_group.all() and distinct.all())


@dataclass(frozen=True)
class Shadow:
    """Scale degree, shift coefficient and rounding of every element of a tensor.

    Attributes
    ----------
    d
        Scale degrees; `ANY` for zeros.
    c
        Shift coefficients.
    slack
        Estimated rounding of `c` in the operation that made it.
    weights
        Which elements sum to one, where that is known.
    scale, shift
        What happened to each property on the way.
    """

    d: Tensor
    c: Tensor
    slack: Tensor
    weights: Weights | None = None
    scale: History = History()
    shift: History = History()

    @property
    def shape(self) -> torch.Size:
        """The shape of the tensor."""
        return self.c.shape

    def history(self, which: Property) -> History:
        """Return what happened to a property."""
        return self.scale if which == "scale" else self.shift

    def map(self, function: Callable[[Tensor], Tensor]) -> Shadow:
        """Apply a function to degrees, coefficients and rounding alike."""
        return Shadow(function(self.d), function(self.c), function(self.slack))

    def with_c(self, c: Tensor) -> Shadow:
        """Return a copy that has other shift coefficients."""
        return replace(self, c=c)

    @property
    def moves(self) -> Tensor:
        """Where the element moves with the offset at all."""
        return ~near(self.c, 0.0, self.slack)


def uniform(shape: Sequence[int], d: float, c: float) -> Shadow:
    """Return the shadow of a tensor whose elements all share one law."""

    def plane(value: float) -> Tensor:
        return torch.full(tuple(shape), value, dtype=torch.float64)

    return Shadow(plane(d), plane(c), plane(0.0))


def lift(value: Tensor | float) -> Shadow:
    """Return the shadow of a constant: degree 0, and any degree where it is zero or infinite."""
    tensor = torch.as_tensor(value, dtype=torch.float64)
    timeless = (tensor == 0) | tensor.isinf()
    d = torch.where(timeless, ANY, 0.0).to(torch.float64)
    return Shadow(d, torch.zeros_like(tensor), torch.zeros_like(tensor))


def tolerance(slack: Tensor) -> Tensor:
    """How far a coefficient with this rounding may be off and still count as exact."""
    return (SAFETY * slack).clamp(max=LARGEST_ROUNDING) + 1e-12


def near(c: Tensor, target: Tensor | float, slack: Tensor) -> Tensor:
    """Where coefficients equal a target up to rounding."""
    return (c - target).abs() <= tolerance(slack)


def clean(shadow: Shadow) -> bool:
    """Whether every element either follows the offset exactly or ignores it."""
    follows = near(shadow.c, 1.0, shadow.slack)
    return bool((follows | ~shadow.moves).all())


def kind(shadow: Shadow) -> str:
    """Name what a tensor is: E, H, I, a degree and coefficient, or a mixture."""
    if shadow.scale.blame or shadow.shift.blame:
        lost = [which for which in ("scale", "shift") if shadow.history(which).blame]
        return "no " + " or ".join(lost)
    names = {"H" if d == 1 else "I" for d in _values(shadow.d[~shadow.moves]) if d in (0, 1)}
    follows = near(shadow.c, 1.0, shadow.slack)
    names |= {"E"} if bool((follows & (shadow.d == 1)).any()) else set()
    usual = ~shadow.moves & ((shadow.d == 0) | (shadow.d == 1) | (shadow.d == ANY))
    if not bool((usual | (follows & (shadow.d == 1))).all()):
        degrees, lowest, highest = _values(shadow.d), shadow.c.min(), shadow.c.max()
        degree = f"{degrees[0]:g}" if len(degrees) == 1 else "mixed"
        span = f"{lowest:.2g}" if highest - lowest < 1e-6 else f"{lowest:.2g}..{highest:.2g}"
        return f"d={degree} c={span}"
    return "+".join(sorted(names)) or "0"


def _values(degrees: Tensor) -> list[float]:
    """List the distinct degrees, leaving out those of zeros."""
    found: list[float] = degrees[degrees != ANY].unique().tolist()
    return found


def debts(shadows: Iterable[Shadow]) -> list[Culprit]:
    """List whom to blame if these are not sums of weighted features."""
    return [s.weights.debt for s in shadows if s.weights and s.weights.debt]
