"""The ways that a forward pass goes, as it depends on the size of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from normeq.certification.examples import SMALLEST
from normeq.nn.copies import fresh, private_copy

#: No more sizes than this are tried to meet the branches of a forward pass.
_LARGEST_STRIDE = 16


@dataclass(frozen=True)
class Way:
    """One way that a forward pass goes.

    Attributes
    ----------
    args
        Arguments that go this way, to prove it for.
    small
        Arguments with a smaller image that go this way as well, to measure it with.
    sizes
        Sizes of images that go this way.
    """

    args: list[Any]
    small: list[Any]
    sizes: list[tuple[int, ...]]


def way_of(module: nn.Module, args: list[Any]) -> Way:
    """Return the way that a forward pass goes with the user's own arguments."""
    size = tuple(args[0].shape[2:])
    smallest = min(SMALLEST.get(len(size), (0,)))
    operations: list[str] = []
    for factor in (16, 8, 4, 2):
        if any(n % factor or n // factor < smallest for n in size):
            continue
        operations = operations or _OperationLog.over(module, args).operations
        smaller = _resized(args, [n // factor for n in size])
        if _operations(module, smaller) == operations:
            return Way(args, smaller, [size])
    return Way(args, args, [size])


def branches(module: nn.Module, args: list[Any]) -> list[Way]:
    """List the ways that a forward pass goes, with the sizes that go each.

    The network is run at the example's size and, for every residue of it modulo the network's
    stride, at a size with that residue; sizes at which the same operations happen go one way.
    """
    first = _OperationLog.over(module, args)
    ways = {tuple(first.operations): Way(args, args, [tuple(args[0].shape[2:])])}
    size = tuple(args[0].shape[2:])
    stride = first.stride(size)
    for residue in range(1, stride):
        # Rows and columns have different residues, and over all sizes each has every one.
        longer = [n + (residue if axis % 2 else -residue % stride) for axis, n in enumerate(size)]
        changed = _resized(args, longer)
        operations = _operations(module, changed)
        if operations is not None:
            way = ways.setdefault(tuple(operations), Way(changed, changed, []))
            way.sizes.append(tuple(longer))
    return list(ways.values())


def _resized(args: list[Any], size: Sequence[int]) -> list[Any]:
    """Return arguments with images, and maps beside them, of another size."""
    before = args[0].shape[2:]

    def resized(part: Any) -> Any:
        if isinstance(part, Tensor) and part.ndim == args[0].ndim and part.shape[2:] == before:
            return part.new_full((*part.shape[:2], *size), float(part.reshape(-1)[0]))
        return part

    changed: list[Any] = tree_map(resized, args)
    return changed


def _operations(module: nn.Module, args: list[Any]) -> list[str] | None:
    """List the operations of a forward pass; None if the network does not take the arguments."""
    try:
        return _OperationLog.over(module, args).operations
    except Exception:
        return None


class _OperationLog(TorchDispatchMode):
    """Notes the operations of a forward pass, and the smallest features in it.

    Operations go by their names and the numbers that they are given, except for lengths, which
    differ from size to size: of those only the signs count.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[str] = []
        self._lengths: set[int] = set()

    @classmethod
    def over(cls, module: nn.Module, args: Sequence[Any]) -> _OperationLog:
        """Run a copy of a network on a random image, and log its operations."""
        image = torch.rand(args[0].shape, generator=torch.Generator().manual_seed(0)).to(args[0])
        log, copied = cls(), private_copy(module)
        with torch.no_grad(), log:
            copied(image, *fresh(args[1:]))
        return log

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self.operations.append(_described(func, args, kwargs))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.ndim >= 3 and leaf.shape[-1] > 1:
                self._lengths.add(leaf.shape[-2] if leaf.ndim > 3 else leaf.shape[-1])
        return result

    def stride(self, size: Sequence[int]) -> int:
        """Return how much smaller than the image the smallest features are."""
        length = size[-2] if len(size) > 1 else size[-1]
        ratios = [round(length / n) for n in self._lengths if n > 1 and length % n == 0]
        return min(max(ratios, default=1), _LARGEST_STRIDE)


def _described(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Name an operation with the numbers that it is given, and of lengths only the signs."""
    declared = {argument.name: argument.type for argument in func._schema.arguments}
    given = {**dict(zip(declared, args, strict=False)), **kwargs}
    marks = []
    for name, value in given.items():
        for leaf in tree_leaves(value):
            length = isinstance(leaf, int) and "int" in str(declared[name]).lower()
            if length:
                marks.append(f"{(leaf > 0) - (leaf < 0):+d}")
            elif isinstance(leaf, bool | int | float | str):
                marks.append(repr(leaf))
    return f"{func}({', '.join(marks)})"
