"""One operation of a traced network, as its law sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from normeq.certification.shadow import Culprit, Property, Shadow, uniform

#: A law: takes the step and the operation's arguments, shadows in place of tensors.
Law = Callable[..., Any]

LAWS: dict[str, Law] = {}

#: Operations whose law looks at every argument, not only at the first.
_MANY: set[str] = set()


def law(*operations: str, many: bool = False) -> Callable[[Law], Law]:
    """Register a function as the law of these operations.

    It looks at the first argument only, unless `many`: with features among the other arguments
    the law does not apply.
    """

    def register(function: Law) -> Law:
        for operation in operations:
            LAWS[operation] = function
        if many:
            _MANY.update(operations)
        return function

    return register


def find_law(operation: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Law | None:
    """Return the law that applies to an operation called in this way."""
    beyond = [*args[1:], kwargs] if args and isinstance(args[0], Shadow) else [*args, kwargs]
    if operation not in _MANY and any(shadows_in(beyond)):
        return None
    return LAWS.get(operation)


@dataclass
class Operation:
    """An operation being judged: how to run it, and where its law reports what it breaks.

    Attributes
    ----------
    operation
        Its name.
    path
        The module in which it happens.
    target
        The operation itself, which runs on tensors.
    shapes
        Shapes of its outputs, in order.
    dtype
        Number format of its first output.
    eps
        Relative precision of the network's numbers.
    order
        Its place in the network.
    """

    operation: str
    path: str
    target: Callable[..., Any]
    shapes: Sequence[Sequence[int]]
    dtype: torch.dtype
    eps: float
    order: int = 0
    blamed: list[tuple[Culprit, bool]] = field(default_factory=list)
    suspected: list[Culprit] = field(default_factory=list)

    def blame(
        self,
        which: Property,
        reason: str,
        fix: str,
        *,
        suspects: bool = True,
        unknown: bool = False,
    ) -> None:
        """Report that this operation breaks a property; `suspects` before it share the blame."""
        culprit = self._culprit(which, reason, fix, unknown)
        self.blamed.append((culprit, suspects))

    def owe(self, reason: str, fix: str) -> Culprit:
        """Return whom to blame if features weighted here are never summed up."""
        return self._culprit("shift", reason, fix, unknown=False)

    def suspect(self, which: Property, reason: str, fix: str) -> None:
        """Report a lawful coefficient that something later may not bear."""
        self.suspected.append(self._culprit(which, reason, fix, unknown=False))

    def _culprit(self, which: Property, reason: str, fix: str, unknown: bool) -> Culprit:
        return Culprit(self.path, self.operation, which, reason, fix, unknown, self.order)

    def output(self, d: float, c: float, index: int = 0) -> Shadow:
        """Return an output whose elements all share one law."""
        return uniform(self.shapes[index], d, c)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Propagation the operation on tensors."""
        return self.target(*args, **kwargs)

    def run_planes(self, args: Any, kwargs: Any) -> Any:
        """Propagation the operation on degrees, coefficients and rounding of its inputs in turn."""
        d, c, slack = (
            self.run(*on_plane(args, name), **on_plane(kwargs, name))
            for name in ("d", "c", "slack")
        )
        if isinstance(d, Tensor):
            return Shadow(d, c, slack)
        return [Shadow(*parts) for parts in zip(d, c, slack, strict=True)]


def on_plane(value: Any, name: str) -> Any:
    """Replace every shadow in a nest of arguments by one of its planes."""
    if isinstance(value, Shadow):
        plane: Tensor = getattr(value, name)
        return plane.contiguous()
    if isinstance(value, dict):
        return {key: on_plane(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(on_plane(item, name) for item in value)
    return value


def shadows_in(value: Any) -> Iterable[Shadow]:
    """Yield every shadow in a nest of arguments."""
    if isinstance(value, Shadow):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from shadows_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from shadows_in(item)


def span(values: Tensor) -> str:
    """Write the range of some numbers, precisely enough to tell them from one."""
    low, high = float(values.min()), float(values.max())
    digits = 7 if abs(low - 1) < 1e-3 and abs(high - 1) < 1e-3 else 3
    low_text, high_text = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return low_text if low_text == high_text else f"{low_text} to {high_text}"


def planes_like(shadow: Shadow, shape: Sequence[int]) -> Shadow:
    """Return a shadow broadcast to a shape."""
    return shadow.map(lambda plane: plane.broadcast_to(tuple(shape)))
