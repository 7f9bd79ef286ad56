"""What is known of a tensor inside a network: how it answers to gain and offset of the input.

When the input becomes ``λ·x + μ``, an element ``t`` of any tensor inside the network becomes
``λ^d·(t + c·μ/λ)``: `d` is its scale degree and `c` its shift coefficient, a number or, after a
multiplication by what the image determines, something that no offset changes. A `Shadow` holds
both for every element, so that the network's own operations, run on shadows, carry them along.

Coefficients that depend on the image are told from their values at one random point: every
element has a formal value, random where a nonlinear operation made it, and computed by the
operations in between. So ``Σ w·x / Σ w`` has the coefficient one at that point, and as the point
is random, everywhere.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

Property = Literal["scale", "shift"]
PROPERTIES: tuple[Property, ...] = ("scale", "shift")

#: The degree of zeros and infinities, which no gain changes: it agrees with every other degree.
ANY = math.inf

#: How many times the estimated rounding a coefficient may be off and still count as exact.
SAFETY = 16.0

#: No deviation beyond this counts as rounding, however deep the network.
LARGEST_ROUNDING = 1e-3

#: How far a coefficient without rounding may be off: what double precision adds.
_EXACT = 1e-12

#: Stands for infinity among formal values, where infinity itself would give 0·∞.
_HUGE = 1e150


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
    line
        Where it is called in the network's source, as ``file.py:12``, if that is known.
    """

    path: str
    operation: str
    property: Property
    reason: str
    fix: str
    unknown: bool = False
    order: int = field(default=0, compare=False)
    line: str = field(default="", compare=False)


@dataclass(frozen=True)
class History:
    """What happened to one property on the way to a tensor.

    `suspects` made a coefficient that is lawful by itself but may break a later operation, such as
    kernels that do not sum to one.
    """

    blame: frozenset[Culprit] = frozenset()
    suspects: frozenset[Culprit] = frozenset()

    def __or__(self, other: History) -> History:
        return History(self.blame | other.blame, self.suspects | other.suspects)


@dataclass(frozen=True)
class Shadow:
    """Scale degree, shift coefficient, formal value and rounding of every element of a tensor.

    Attributes
    ----------
    d
        Scale degrees; `ANY` for zeros.
    c
        Shift coefficients at the random point.
    v
        Formal values at the random point; the values themselves for constants.
    slack
        Estimated rounding of `c` in the operation that made it.
    scale, shift
        What happened to each property on the way.
    """

    d: Tensor
    c: Tensor
    v: Tensor
    slack: Tensor
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
        """Apply a function to degrees, coefficients, values and rounding alike."""
        return Shadow(function(self.d), function(self.c), function(self.v), function(self.slack))

    def still(self) -> Shadow:
        """Return the shadow of the same values, without their offset."""
        return replace(self, c=torch.zeros_like(self.c))

    def with_values(self, v: Tensor) -> Shadow:
        """Return a copy that has other formal values."""
        return replace(self, v=v)

    @cached_property
    def moves(self) -> Tensor:
        """Where the element moves with the offset at all."""
        return ~near(self.c, 0.0, self.slack)

    @property
    def scales(self) -> Tensor:
        """Where the element changes with the gain at all."""
        return (self.d != 0) & (self.d != ANY)


def uniform(shape: Sequence[int], d: float, c: float, seed: int = 0) -> Shadow:
    """Return the shadow of a tensor whose elements all share one law, with random values."""

    def plane(value: float) -> Tensor:
        return torch.full(tuple(shape), value, dtype=torch.float64)

    return Shadow(plane(d), plane(c), random_values(shape, seed), plane(0.0))


def lift(value: Tensor | float) -> Shadow:
    """Return the shadow of a constant: degree 0, and any degree where it is zero or infinite."""
    tensor = torch.as_tensor(value)
    tensor = tensor if tensor.is_complex() else tensor.double()
    scale_free = (tensor == 0) | tensor.isinf()
    d = torch.where(scale_free, ANY, 0.0).double()
    if not tensor.is_complex():
        tensor = tensor.nan_to_num(nan=1.0, posinf=_HUGE, neginf=-_HUGE)
    return Shadow(d, torch.zeros_like(tensor), tensor, torch.zeros_like(d))


def random_values(shape: Sequence[int], seed: int) -> Tensor:
    """Draw formal values between 0.5 and 1.5."""
    generator = torch.Generator().manual_seed(seed)
    return 0.5 + torch.rand(tuple(shape), generator=generator, dtype=torch.float64)


def scrambled(name: str, *values: Any) -> Tensor:
    """Return values between 0.5 and 1.5 for an unknown function of others, element by element.

    Equal arguments give equal values, as they do for the function; nothing else is kept of it.
    """
    mixed = torch.zeros((), dtype=torch.float64)
    for number, value in enumerate((zlib.crc32(name.encode()) / 2**32, *values)):
        plane = torch.as_tensor(value)
        plane = plane.real + 1.7 * plane.imag if plane.is_complex() else plane
        weight = 1.0 + 0.618033988749895 * number
        mixed = (mixed + weight * plane.double()).mul(12.9898).sin()
    return 0.5 + (mixed * 43758.5453123).frac().abs()


def tolerance(slack: Tensor) -> Tensor:
    """How far a coefficient with this rounding may be off and still count as exact."""
    return (SAFETY * slack).clamp(max=LARGEST_ROUNDING) + _EXACT


def near(c: Tensor, target: Tensor | float, slack: Tensor) -> Tensor:
    """Where coefficients equal a target up to rounding."""
    return (c - target).abs() <= (tolerance(slack) if slack.any() else _EXACT)


def clean(shadow: Shadow) -> bool:
    """Whether every element either follows the offset exactly or ignores it."""
    follows = near(shadow.c, 1.0, shadow.slack)
    return bool((follows | ~shadow.moves).all())


def kind(shadow: Shadow) -> str:
    """Name what a tensor is: E, H, I, a degree and coefficient, or a mixture."""
    if shadow.scale.blame or shadow.shift.blame:
        lost = [which for which in PROPERTIES if shadow.history(which).blame]
        return "no " + " or ".join(lost)
    still = distinct(shadow.d[~shadow.moves] if shadow.moves.any() else shadow.d)
    names = {"H" if d == 1 else "I" for d in still if d in (0, 1)}
    follows = near(shadow.c, 1.0, shadow.slack)
    names |= {"E"} if bool((follows & (shadow.d == 1)).any()) else set()
    usual = ~shadow.moves & ((shadow.d == 0) | (shadow.d == 1) | (shadow.d == ANY))
    if not bool((usual | (follows & (shadow.d == 1))).all()):
        degrees = distinct(shadow.d)
        degree = f"{degrees[0]:g}" if len(degrees) == 1 else "mixed"
        return f"d={degree} c={span(shadow.c)}"
    return "+".join(sorted(names)) or "0"


def distinct(degrees: Tensor) -> list[float]:
    """List the distinct degrees, leaving out those of zeros."""
    if not degrees.numel():
        return []
    low, high = (float(end) for end in degrees.aminmax())
    if low == high:
        return [low] if low != ANY else []
    found: list[float] = degrees[degrees != ANY].unique().tolist()
    return found


def span(values: Tensor) -> str:
    """Write the range of some numbers, precisely enough to tell them from one."""
    values = values.abs() if values.is_complex() else values
    low, high = float(values.min()), float(values.max())
    digits = 7 if abs(low - 1) < 1e-3 and abs(high - 1) < 1e-3 else 3
    low_text, high_text = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return low_text if low_text == high_text else f"{low_text} to {high_text}"
