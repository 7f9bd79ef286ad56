"""The network that is judged, in copies of our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from normeq.nn.copies import bake_weights, private_copy


@dataclass(frozen=True)
class Subject:
    """A network in its own precision and in double precision.

    Weights that are computed from others are computed once for all, each in its copy's precision.
    """

    own: nn.Module
    precise: nn.Module

    @classmethod
    def of(cls, module: nn.Module) -> Subject:
        """Copy a network, which is left as it is."""
        own, precise = private_copy(module), private_copy(module).double()
        for copied in (own, precise):
            bake_weights(copied)
        return cls(own, precise)

    def constants(self) -> dict[str, Tensor]:
        """Return parameters and buffers in double precision, by name."""
        net = self.precise
        return {
            **dict(net.named_parameters(remove_duplicate=False)),
            **dict(net.named_buffers(remove_duplicate=False)),
        }


@contextmanager
def unchanged(net: nn.Module) -> Iterator[None]:
    """Undo what happens to a network's buffers, as in batch norm while it trains."""
    buffers = [
        (module, name, value, value.clone())
        for module in net.modules()
        for name, value in module._buffers.items()
        if value is not None
    ]
    try:
        yield
    finally:
        for module, name, value, before in buffers:
            module._buffers[name] = value.copy_(before)
