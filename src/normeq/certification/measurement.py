"""What a proof must agree with: the network's own answers to a few gains and offsets."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from normeq.certification.shadow import SAFETY, Culprit, Property

#: Relative error in double precision beyond which a network does not do what was proven.
TOLERATED = 1e-2

_GAINS = (0.3, 40.0)
_OFFSETS = (-100.0, -1.0, 1.0, 100.0)


@dataclass(frozen=True)
class Measured:
    """Errors of each property in double precision, and what rounding adds up to without it."""

    errors: dict[Property, float]
    bound: float


@torch.no_grad()
def measure(module: nn.Module, args: Sequence[Any]) -> Measured:
    """Measure a copy of a network on a random image of unit spread.

    The bound is for each unit of offset. Every deviation is known where it arises, but how much
    the network amplifies it depends on the image: a bound for all images would grow exponentially
    with depth and say nothing. So it is measured, and given room.
    """
    image = torch.randn(args[0].shape, generator=torch.Generator().manual_seed(0)).to(args[0])
    given = _Network(copy.deepcopy(module), image, args[1:])
    shift = _offset_error(given)
    bound = SAFETY * max(shift, torch.finfo(image.dtype).eps)
    try:
        levels = _on_levels(args[1:], Tensor.double)
        net = _Network(copy.deepcopy(module).double(), image.double(), levels)
        errors: dict[Property, float] = {"scale": _gain_error(net), "shift": _offset_error(net)}
    except Exception:  # a network that insists on its precision
        errors = {"scale": _gain_error(given), "shift": shift}
    return Measured(errors, bound)


def otherwise(which: Property, error: float) -> Culprit:
    """Return whom to blame for a measurement that does not agree with the proof: nobody known."""
    return Culprit(
        "",
        "measurement",
        which,
        f"the network does otherwise than its operations promise (relative error {error:.2g}).",
        "please report it; normeq.normalized around the network",
        unknown=True,
    )


class _Network:
    """A network with what it is asked about: an image, and noise levels."""

    def __init__(self, net: nn.Module, image: Tensor, rest: Sequence[Any]) -> None:
        self._net = net
        self._image = image
        self._rest = rest
        self._reference = self._outputs(image, rest)

    def pairs(self, gain: float = 1.0, offset: float = 0.0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each output for the changed image beside that for the image itself."""
        levels = _on_levels(self._rest, partial(operator.mul, gain))
        changed = self._outputs(gain * self._image + offset, levels)
        for output, still in zip(changed, self._reference, strict=True):
            if still.numel():
                yield output, still

    def _outputs(self, image: Tensor, rest: Sequence[Any]) -> list[Tensor]:
        """Propagation the network, with the same random numbers every time."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            leaves = tree_leaves(self._net(image, *rest))
        return [leaf.double() for leaf in leaves if isinstance(leaf, Tensor)]


def _offset_error(net: _Network) -> float:
    """Return the worst ``|f(y + μ) - f(y) - μ| / (|μ| + 1)``."""
    return _worst(
        (moved - still - offset).abs().max() / (abs(offset) + 1)
        for offset in _OFFSETS
        for moved, still in net.pairs(offset=offset)
    )


def _gain_error(net: _Network) -> float:
    """Return the worst ``|f(λ·y) / λ - f(y)|`` relative to the largest output."""
    return _worst(
        (scaled / gain - still).abs().max() / (still.abs().max() + 1)
        for gain in _GAINS
        for scaled, still in net.pairs(gain=gain)
    )


def _worst(errors: Iterable[Tensor]) -> float:
    """Return the largest error, infinity if one of them is no number."""
    numbers = [float(error) for error in errors]
    return math.inf if any(math.isnan(number) for number in numbers) else max(numbers, default=0.0)


def _on_levels(rest: Sequence[Any], change: Callable[[Tensor], Tensor]) -> Sequence[Any]:
    """Change the noise levels among the arguments that follow the image."""

    def one(part: Any) -> Any:
        return change(part) if isinstance(part, Tensor) and part.is_floating_point() else part

    changed: Sequence[Any] = tree_map(one, list(rest))
    return changed
