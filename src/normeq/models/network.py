"""What every network of the registry shares: what it is, so that it can be built again."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import nn

from normeq.models.building_blocks import Variant
from normeq.nn import Normalized

Equivariance = Literal["none", "scale", "norm"]


class Network(nn.Module):
    """A network in one variant.

    `config` holds the arguments of `create` that build it again, `card` what is known of its
    weights.
    """

    architecture: ClassVar[str]
    channels: int

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.variant = variant
        self.equivariance = equivariance_of(variant)
        self.config: dict[str, Any] = {}
        self.card: dict[str, Any] = {}


class Wrapped(Normalized):
    """An ordinary network made equivariant from outside, by mean and standard deviation.

    ``net(λ·x + μ) = λ·net(x) + μ``; the statistics are those of the whole sample.
    """

    variant: Variant = "norm-equiv-wrapped"
    equivariance: Equivariance = "norm"

    def __init__(self, inner: Network) -> None:
        super().__init__(inner, "mean-std")
        self.architecture = inner.architecture
        self.channels = inner.channels
        self.config: dict[str, Any] = {}
        self.card: dict[str, Any] = {}


def equivariance_of(variant: Variant) -> Equivariance:
    """Return the property that a variant has by construction.

    Examples
    --------
    >>> equivariance_of("norm-equiv-residual")
    'norm'
    """
    if variant == "ordinary":
        return "none"
    return "scale" if variant == "scale-equiv" else "norm"
