"""What a proof must agree with: the network's own answers to a few gains and offsets."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Sequence
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
    single = _errors(copy.deepcopy(module), image, args[1:])
    bound = SAFETY * max(single["shift"], torch.finfo(image.dtype).eps)
    try:
        levels = _on_levels(args[1:], Tensor.double)
        errors = _errors(copy.deepcopy(module).double(), image.double(), levels)
    except Exception:  # a network that insists on its precision
        errors = single
    return Measured(errors, bound)


def _errors(net: nn.Module, image: Tensor, rest: Sequence[Any]) -> dict[Property, float]:
    return {"scale": _gain_error(net, image, rest), "shift": _offset_error(net, image, rest)}


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


def _outputs(net: nn.Module, image: Tensor, rest: Sequence[Any]) -> list[Tensor]:
    """Run a network, with the same random numbers every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        leaves = tree_leaves(net(image, *rest))
    return [leaf.double() for leaf in leaves if isinstance(leaf, Tensor)]


def _offset_error(net: nn.Module, image: Tensor, rest: Sequence[Any]) -> float:
    """Return the worst ``|f(y + μ) - f(y) - μ| / (|μ| + 1)``."""
    reference = _outputs(net, image, rest)
    errors = [
        (moved - still - offset).abs().max() / (abs(offset) + 1)
        for offset in _OFFSETS
        for moved, still in zip(_outputs(net, image + offset, rest), reference, strict=True)
        if still.numel()
    ]
    return _worst(errors)


def _gain_error(net: nn.Module, image: Tensor, rest: Sequence[Any]) -> float:
    """Return the worst ``|f(λ·y) / λ - f(y)|`` relative to the largest output."""
    reference = _outputs(net, image, rest)
    errors = []
    for gain in _GAINS:
        levels = _on_levels(rest, partial(operator.mul, gain))
        outputs = _outputs(net, gain * image, levels)
        errors += [
            (scaled / gain - still).abs().max() / (still.abs().max() + 1)
            for scaled, still in zip(outputs, reference, strict=True)
            if still.numel()
        ]
    return _worst(errors)


def _worst(errors: Sequence[Tensor]) -> float:
    """Return the largest error, infinity if one of them is no number."""
    numbers = [float(error) for error in errors]
    return math.inf if any(math.isnan(number) for number in numbers) else max(numbers, default=0.0)


def _on_levels(rest: Sequence[Any], change: Callable[[Tensor], Tensor]) -> Sequence[Any]:
    """Change the noise levels among the arguments that follow the image."""

    def one(part: Any) -> Any:
        return change(part) if isinstance(part, Tensor) and part.is_floating_point() else part

    changed: Sequence[Any] = tree_map(one, list(rest))
    return changed
