"""How far any function of arrays or tensors is from equivariant, at worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from normeq.errors import EquivarianceError, InputError, UsageError

Property = Literal["scale", "shift", "norm"]
PROPERTIES: tuple[Property, ...] = get_args(Property)

GAINS = (1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3)
#: In spreads of the image.
OFFSETS = (1.0, -1.0, 10.0, -10.0, 100.0, -100.0, 1e3, -1e3)
#: Largest error, in spreads of the image, that is still rounding.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-3}
# Beyond offsets of this many spreads, single precision is too coarse for the image itself.
_REACH_OF_SINGLE = 100.0


@dataclass(frozen=True)
class Deviation:
    """How far ``f(λ·y + μ)`` is from ``λ·f(y) + μ``, in units of ``λ·spread``, at worst."""

    error: float
    gain: float
    offset: float


@dataclass(frozen=True)
class Measurement:
    """The worst relative errors of a function, and where each was met."""

    worst: dict[Property, Deviation]

    @property
    def scale(self) -> float:
        """Worst of ``|f(λ·y) - λ·f(y)|``, relative to the spread of ``λ·y``."""
        return self.worst["scale"].error

    @property
    def shift(self) -> float:
        """Worst of ``|f(y + μ) - (f(y) + μ)|``, relative to the spread of ``y``."""
        return self.worst["shift"].error

    @property
    def norm(self) -> float:
        """Worst of ``|f(λ·y + μ) - (λ·f(y) + μ)|``, relative to the spread of ``λ·y``."""
        return self.worst["norm"].error

    def __repr__(self) -> str:
        return f"Measurement(scale={self.scale:.1e}, shift={self.shift:.1e}, norm={self.norm:.1e})"


def equivariance_error(
    f: Callable[..., Any],
    image: Any,
    sigma: Any = None,
    *,
    gains: Iterable[float] = GAINS,
    offsets: Iterable[float] = OFFSETS,
) -> Measurement:
    """Measure how far ``f(λ·y + μ, λ·σ)`` is from ``λ·f(y, σ) + μ``.

    Images are transformed in float64 and handed to `f` in their own kind and dtype; errors are
    relative to the spread of the transformed image (its standard deviation, or for a constant
    image the larger of its absolute value and 1). Offsets always include the one that
    brings the mean to zero, where thresholding methods fail.

    Parameters
    ----------
    f
        Called as ``f(image)``, or ``f(image, sigma)`` if sigma is given.
    image
        An array or tensor in whatever layout `f` takes; integers are handed over as float64.
    sigma
        Noise level in the units of the image, scaled with the gain.
    gains
        The values of λ.
    offsets
        The values of μ, in spreads of the transformed image.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).random((16, 16))
    >>> equivariance_error(lambda y: 2 * y - y.mean(), y).norm < 1e-12
    True
    >>> error = equivariance_error(abs, y)
    >>> error.scale < 1e-12, error.shift > 1
    (True, True)
    """
    gains = tuple(gains)
    offsets = tuple(offsets)
    exact = _to_float64(image)
    if exact.numel() == 0 or not exact.isfinite().all():
        raise InputError("equivariance is measured on a finite image of at least one pixel.")
    spread = image_spread(exact)
    center = -exact.mean().item()
    reference = _call(f, exact, image, sigma, 1.0)

    def deviation(gain: float, offset: float) -> Deviation:
        """Measure one gain and one offset, given in image units."""
        output = _call(f, gain * exact + offset, image, sigma, gain)
        difference = (output - (gain * reference + offset)).abs().max().item()
        error = difference / (gain * spread)
        return Deviation(error if np.isfinite(error) else float("inf"), gain, offset)

    scaled = [deviation(gain, 0.0) for gain in gains]
    shifted = [deviation(1.0, offset * spread) for offset in offsets]
    shifted.append(deviation(1.0, center))
    # Each offset meets a gain and each gain an offset; the full product would tell no more.
    pairs = zip(range(max(len(gains), len(offsets) + 1)), cycle(gains), cycle((*offsets, None)))
    both = [
        deviation(gain, gain * (center if offset is None else offset * spread))
        for _, gain, offset in pairs
    ]
    return Measurement(
        {
            "scale": max(scaled, key=lambda d: d.error),
            "shift": max(shifted, key=lambda d: d.error),
            "norm": max(scaled + shifted + both, key=lambda d: d.error),
        }
    )


def assert_equivariant(
    f: Callable[..., Any],
    image: Any,
    property: Property = "norm",
    sigma: Any = None,
    *,
    tolerance: float | None = None,
) -> None:
    """Raise `EquivarianceError` unless ``f(λ·y + μ, λ·σ) = λ·f(y, σ) + μ`` was measured to hold.

    Parameters
    ----------
    f, image, sigma
        See `equivariance_error`.
    property
        ``"scale"`` (no offsets), ``"shift"`` (no gains) or ``"norm"``.
    tolerance
        Largest error allowed, in spreads; by default 1e-9, and 1e-3 for an image of less than
        double precision, whose offsets then stop at 100 spreads.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).random((16, 16))
    >>> assert_equivariant(abs, y, "scale")
    >>> assert_equivariant(abs, y, "shift")
    Traceback (most recent call last):
    ...
    normeq.errors.EquivarianceError: builtin_function_or_method abs is not shift-equivariant: ...
    """
    if property not in PROPERTIES:
        raise UsageError(f"property {property!r} is unknown: use 'scale', 'shift' or 'norm'.")
    dtype = _dtype_of(image)
    allowed = tolerance_of(dtype) if tolerance is None else tolerance
    worst = equivariance_error(f, image, sigma, offsets=offsets_of(dtype)).worst[property]
    if not worst.error <= allowed:
        name = getattr(f, "__name__", "")
        raise EquivarianceError(
            f"{type(f).__name__} {name}".strip() + f" is not {property}-equivariant: at gain "
            f"{worst.gain:g} and offset {worst.offset:g} it is off by {worst.error:.1e} of the "
            f"image's spread, more than {allowed:g}."
        )


def tolerance_of(dtype: torch.dtype) -> float:
    """Return the largest error that is still rounding; below single precision, that of single."""
    return TOLERANCES.get(dtype, TOLERANCES[torch.float32])


def offsets_of(dtype: torch.dtype) -> tuple[float, ...]:
    """Return the offsets, in spreads, at which images of a precision can be measured."""
    reach = math.inf if dtype == torch.float64 else _REACH_OF_SINGLE
    return tuple(offset for offset in OFFSETS if abs(offset) <= reach)


def image_spread(image: Tensor) -> float:
    """Return the standard deviation, or for a constant image ``max(|value|, 1)``.

    Examples
    --------
    >>> import torch
    >>> image_spread(torch.full((4, 4), -3.0))
    3.0
    """
    low, high = image.min().item(), image.max().item()
    return max(abs(low), 1.0) if low == high else image.std(correction=0).item()


def _to_float64(values: Any) -> Tensor:
    # A copy, because torch takes no arrays with negative strides.
    tensor = values if isinstance(values, Tensor) else torch.as_tensor(np.array(values))
    return tensor.detach().to("cpu", torch.float64)


def _dtype_of(image: Any) -> torch.dtype:
    """Return the precision in which a function is given the image."""
    tensor = image if isinstance(image, Tensor) else torch.as_tensor(np.array(image))
    return tensor.dtype if tensor.is_floating_point() else torch.float64


def _call(f: Callable[..., Any], exact: Tensor, like: Any, sigma: Any, gain: float) -> Tensor:
    """Call `f` on values in the kind and precision of `like`; return its output in float64."""
    values = exact.to(_dtype_of(like))
    given = values.to(like.device) if isinstance(like, Tensor) else values.numpy()
    with torch.no_grad():
        return _to_float64(f(given) if sigma is None else f(given, gain * sigma))
