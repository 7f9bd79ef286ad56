"""The table of measured equivariance errors of one model, on images of three kinds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from normeq._support.photograph import sample_photograph
from normeq.equivariance.worst_errors import (
    PROPERTIES,
    TOLERANCES,
    Measurement,
    Property,
    equivariance_error,
    offsets_of,
)
from normeq.nn.inputs import image_channels


@dataclass(frozen=True)
class CheckRow:
    """Errors of a model on one image in one precision."""

    image: str
    dtype: torch.dtype
    measured: Measurement

    def holds(self, name: Property) -> bool:
        """Tell whether the error of a property is rounding alone."""
        return self.measured.worst[name].error <= TOLERANCES[self.dtype]


def check(
    model: Callable[..., Any], *, size: int = 48, sigma: float | None = None
) -> list[CheckRow]:
    """Measure the equivariance of a model on a random, a constant and a real image.

    Parameters
    ----------
    model
        A network on ``(N, C, H, W)``, or a function of 2-D arrays. It is run in double and in
        single precision, or in its ``precisions`` if it has some of its own.
    size
        Height and width of the images.
    sigma
        Noise level for a model that takes one, beside images in [0, 1].

    Examples
    --------
    >>> import normeq
    >>> net = normeq.create("fdncnn", "norm-equiv", width=4, depth=3)
    >>> all(row.holds("norm") for row in check(net))
    True
    """
    return [
        CheckRow(name, dtype, _measure(model, image, dtype, sigma))
        for dtype in getattr(model, "precisions", TOLERANCES)
        for name, image in sample_images(size)
    ]


def table(rows: list[CheckRow]) -> str:
    """Lay out rows for people: a tick where a property holds, a cross where it does not."""
    lines = [f"{'image':<12}{'precision':<12}" + "".join(f"{name:<12}" for name in PROPERTIES)]
    for row in rows:
        cells = [
            f"{row.measured.worst[name].error:.1e} {'✓' if row.holds(name) else '✗'}"
            for name in PROPERTIES
        ]
        precision = str(row.dtype).removeprefix("torch.")
        lines.append(f"{row.image:<12}{precision:<12}" + "".join(f"{cell:<12}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def verdict(rows: list[CheckRow]) -> str:
    """Say in words which property holds on every image and in every precision."""
    held = [name for name in PROPERTIES if all(row.holds(name) for row in rows)]
    if "norm" in held:
        return "normalization-equivariant"
    if not held:
        return "not equivariant"
    return f"{' and '.join(held)}-equivariant, but not normalization-equivariant"


def sample_images(size: int) -> Iterator[tuple[str, np.ndarray[Any, np.dtype[np.float64]]]]:
    """Yield a random, a constant and a real image with values in [0, 1], by name."""
    yield "random", np.random.default_rng(0).random((size, size))
    yield "constant", np.full((size, size), 0.4)
    yield "photograph", sample_photograph(size)


def _measure(
    model: Callable[..., Any],
    image: np.ndarray[Any, np.dtype[np.float64]],
    dtype: torch.dtype,
    sigma: float | None,
) -> Measurement:
    offsets = offsets_of(dtype)
    given = torch.as_tensor(image).to(dtype)
    if not isinstance(model, nn.Module):
        return equivariance_error(model, given.numpy(), sigma, offsets=offsets)
    batch = given.expand(1, image_channels(model) or 1, *given.shape).contiguous()
    return equivariance_error(copy.deepcopy(model).to(dtype), batch, sigma, offsets=offsets)
