"""One operation of a traced network, as its law sees it, and the register of laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from normeq.certification.shadow import Culprit, Property, Shadow, uniform

#: A law: takes the operation and its arguments, with shadows in place of tensors that depend on
#: the image, and returns the shadow of each output.
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
    name
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
    line
        Where the network's source calls it.
    seed
        Gives the seed of the random values that come out of it.
    """

    name: str
    path: str
    target: Callable[..., Any]
    shapes: Sequence[Sequence[int]]
    dtype: torch.dtype
    eps: float
    order: int = 0
    line: str = ""
    seed: Callable[[], int] = int
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
        self.blamed.append((self._culprit(which, reason, fix, unknown), suspects))

    def suspect(self, which: Property, reason: str, fix: str) -> None:
        """Report a lawful coefficient that may break a later operation."""
        self.suspected.append(self._culprit(which, reason, fix, unknown=False))

    def _culprit(self, which: Property, reason: str, fix: str, unknown: bool) -> Culprit:
        return Culprit(self.path, self.name, which, reason, fix, unknown, self.order, self.line)

    def output(self, d: float, c: float, index: int = 0) -> Shadow:
        """Return an output whose elements all share one law, with random values."""
        return uniform(self.shapes[index], d, c, seed=self.seed() + index)

    def refreshed(self, shadow: Shadow, index: int = 0) -> Shadow:
        """Return a shadow with random values, for the output of a nonlinear operation."""
        fresh = self.output(0.0, 0.0, index).v
        return shadow.with_values(fresh.expand(shadow.shape))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operation on tensors."""
        return self.target(*args, **kwargs)

    def run_planes(self, args: Any, kwargs: Any) -> Any:
        """Run the operation on degrees, coefficients, values and rounding of its inputs in turn."""
        planes = [
            self.run(*on_plane(args, name), **on_plane(kwargs, name))
            for name in ("d", "c", "v", "slack")
        ]
        if isinstance(planes[0], Tensor):
            return Shadow(*planes)
        return [Shadow(*parts) for parts in zip(*planes, strict=True)]


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


def planes_like(shadow: Shadow, shape: Sequence[int]) -> Shadow:
    """Return a shadow broadcast to a shape."""
    return shadow.map(lambda plane: plane.broadcast_to(tuple(shape)))
