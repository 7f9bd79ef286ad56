"""Networks for certificates, each with what must be found out about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from normeq.nn import AffineConv2d


@dataclass(frozen=True)
class Case:
    """A network, the verdicts on scale and shift, and culprits as (path, operation, property)."""

    build: Callable[[], nn.Module]
    scale: str
    shift: str
    culprits: frozenset[tuple[str, str, str]] = frozenset()


CASES: dict[str, Case] = {}


def case(scale: str, shift: str, *culprits: tuple[str, str, str]):
    def register(build):
        CASES[build.__name__] = Case(build, scale, shift, frozenset(culprits))
        return build

    return register


class Of(nn.Module):
    """A network from a function of the image and named layers."""

    def __init__(self, function: Callable[..., Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def affine(inputs: int, outputs: int, size: int = 3) -> AffineConv2d:
    return AffineConv2d(inputs, outputs, size, padding=size // 2)


def plain(inputs: int, outputs: int, size: int = 3, **options) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, padding=size // 2, **{"bias": False} | options)
