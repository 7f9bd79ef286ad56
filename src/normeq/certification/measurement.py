"""What a proof must agree with: the network's own answers to gains and offsets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from normeq.certification.questions import Variation
from normeq.certification.shadow import SAFETY, Property
from normeq.certification.subject import Subject, unchanged
from normeq.nn.copies import fresh

#: By how much a network may amplify what its kernels are off by.
_AMPLIFICATION = 100.0
#: Rounding of a whole network in double precision.
_ROUNDING = 1e-9

#: Gains and offsets that are tried on each of the images.
_GAINS = ((1e-15, 40.0), (0.3, 1e6))
_OFFSETS = ((-100.0, 1.0), (-1.0, 100.0))


@dataclass(frozen=True)
class Counterexample:
    """An image, a gain and an offset at which a property fails.

    Attributes
    ----------
    image
        The first argument of the network; others are those of the example.
    gain, offset
        What the image is multiplied by, and what is added to it.
    error
        ``|f(λ·y + μ) - λ·f(y) - μ|`` relative to the size of ``λ·f(y) + μ``.
    """

    image: Tensor
    gain: float
    offset: float
    error: float


@dataclass(frozen=True)
class Range:
    """The gains and offsets at which a network follows, found for images of unit spread."""

    gain: tuple[float, float]
    offset: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.gain
        gains = [f"gains from {low:.0e} to {high:.0e}"] if low < high else []
        offsets = [f"offsets up to {self.offset[1]:.0e}"] if self.offset[1] > 1 else []
        return ", ".join([*gains, *offsets]) or "no change of units"


@torch.no_grad()
def measure(
    subject: Subject, args: Sequence[Any], variation: Variation
) -> tuple[dict[Property, Counterexample], float]:
    """Measure a network in double precision.

    Returns
    -------
    tuple
        The worst case for each property, and the relative precision of the coarsest number format
        that the network computes in all the same. Gains stay within the range of that format.
    """
    net, args, formats = _in_double(subject, args)
    limits = [torch.finfo(dtype) for dtype in formats]
    lowest, highest = max(f.tiny for f in limits) * 100, min(f.max for f in limits) / 100
    found: dict[Property, list[Counterexample]] = {"scale": [], "shift": []}
    for image, gains, offsets in zip(_images(args[0]), _GAINS, _OFFSETS, strict=True):
        asked = _Asked(net, [image, *args[1:]], variation)
        for gain in gains:
            kept = min(max(gain, lowest), highest)
            found["scale"].append(Counterexample(image, kept, 0.0, asked.error(kept, 0.0)))
        for offset in offsets:
            found["shift"].append(Counterexample(image, 1.0, offset, asked.error(1.0, offset)))
    worst = {which: max(cases, key=lambda case: case.error) for which, cases in found.items()}
    return worst, max(limit.eps for limit in limits)


def tolerated(deviation: float, precision: float) -> float:
    """Return the largest error in double precision that rounding explains.

    Parameters
    ----------
    deviation
        What the kernel sums of the network are off by, in all.
    precision
        Relative precision of the coarsest number format that the network insists on.
    """
    coarse = precision if precision > torch.finfo(torch.float64).eps else 0.0
    return _ROUNDING + _AMPLIFICATION * (deviation + coarse)


@torch.no_grad()
def rounding_bound(subject: Subject, args: Sequence[Any], variation: Variation) -> float:
    """Return what rounding adds to the offset law in the network's own precision.

    The bound is for each unit of offset. Every deviation is known where it arises, but how much
    the network amplifies it depends on the image: a bound for all images would grow exponentially
    with depth and say nothing. So it is measured, and given room.
    """
    image = next(iter(_images(args[0])))
    asked = _Asked(subject.own, [image, *args[1:]], variation)
    worst = max(asked.error(1.0, offset, abs(offset) + 1.0) for offset in _OFFSETS[0])
    return SAFETY * max(worst, torch.finfo(image.dtype).eps)


@torch.no_grad()
def find_range(
    subject: Subject,
    args: Sequence[Any],
    variation: Variation,
    formats: set[torch.dtype],
    proven: set[Property],
) -> Range:
    """Find the gains and offsets at which a network follows what is proven, in its own precision.

    The search goes by powers of ten, as far as the number formats in the network reach.
    """
    image = next(iter(_images(args[0])))
    asked = _Asked(subject.own, [image, *args[1:]], variation)
    limits = [torch.finfo(dtype) for dtype in {*formats, image.dtype}]
    eps = max(limit.eps for limit in limits)
    usual = max(
        *(asked.error(gain, 0.0) for gain in (3.0, 1 / 3) if "scale" in proven),
        *(asked.error(1.0, offset) for offset in (-1.0, 1.0) if "shift" in proven),
    )
    allowed = SAFETY * max(usual, eps)
    reach = math.floor(min(math.log10(limit.max) for limit in limits))
    depth = math.floor(min(-math.log10(limit.tiny) for limit in limits))
    lowest = highest = furthest = 0
    if "scale" in proven:
        highest = _furthest(lambda k: asked.error(10.0**k, 0.0) <= allowed, reach)
        lowest = _furthest(lambda k: asked.error(10.0**-k, 0.0) <= allowed, depth)
    if "shift" in proven:
        furthest = _furthest(
            lambda k: max(asked.error(1.0, 10.0**k), asked.error(1.0, -(10.0**k))) <= allowed,
            reach,
        )
    return Range((10.0**-lowest, 10.0**highest), (-(10.0**furthest), 10.0**furthest))


def _furthest(holds: Callable[[int], bool], limit: int) -> int:
    """Return the largest power up to a limit that holds, if all smaller ones do."""
    high, low = limit + 1, limit
    while low > 0 and not holds(low):  # most often it is the limit, or close to it
        high, low = low, max(0, limit - 2 * (limit - low + 1))
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


class _Asked:
    """A network that is asked about one image with gains and offsets."""

    def __init__(self, net: nn.Module, args: Sequence[Any], variation: Variation) -> None:
        self._net = net
        self._args = args
        self._variation = variation
        self._reference = self._outputs(args)

    def error(self, gain: float, offset: float, unit: float | None = None) -> float:
        """Return the worst deviation in a unit; infinite for NaN and failures.

        By default the unit is what rounding is relative to: the size of the expected output.
        """
        try:
            changed = self._outputs(self._variation.applied(self._args, gain, offset))
        except Exception:  # beyond the range of its numbers a network may fail altogether
            return math.inf
        if [output.shape for output in changed] != [still.shape for still in self._reference]:
            return math.inf
        worst = 0.0
        for output, still in zip(changed, self._reference, strict=True):
            if still.numel():
                expected = self._variation.expected(still, gain, offset)
                size = float(still.abs().max()) + 1.0
                if self._variation.followed:
                    size = gain * size + abs(offset)
                error = float((output - expected).abs().max() / (unit or size))
                worst = max(worst, math.inf if math.isnan(error) else error)
        return worst

    def _outputs(self, args: Sequence[Any]) -> list[Tensor]:
        """Run the network, with the same random numbers every time."""
        with torch.random.fork_rng(), unchanged(self._net):
            torch.manual_seed(0)
            leaves = tree_leaves(self._net(*fresh(args)))
        return [_real(leaf) for leaf in leaves if isinstance(leaf, Tensor)]


def _real(output: Tensor) -> Tensor:
    return (torch.view_as_real(output) if output.is_complex() else output).double()


def _images(like: Tensor) -> list[Tensor]:
    """Return random images of unit spread: around zero, and positive ones with a ramp."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(like.shape, generator=generator).to(like)
    ramp = torch.linspace(0, 3, like.shape[-1], dtype=like.dtype, device=like.device)
    uniform = torch.rand(like.shape, generator=generator).to(like)
    return [noise, uniform + ramp]


def _in_double(
    subject: Subject, args: Sequence[Any]
) -> tuple[nn.Module, list[Any], set[torch.dtype]]:
    """Return the network in double precision, or its own if that fails, and the formats used."""

    def double(part: Any) -> Any:
        floats = isinstance(part, Tensor) and part.is_floating_point()
        return part.double() if floats else part

    net, given = subject.precise, tree_map(double, list(args))
    try:
        with _Formats() as used, unchanged(net):
            net(*fresh(given))
    except Exception:
        net, given = subject.own, list(args)
        with _Formats() as used, unchanged(net):
            net(*fresh(given))
    return net, given, used.formats


class _Formats(TorchDispatchMode):
    """Notes the floating-point formats in which something is computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.formats = {torch.float64}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex()):
                self.formats.add(leaf.dtype.to_real())
        return result
