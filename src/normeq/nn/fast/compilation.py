"""`torch.compile` where the user asks for it, with a sentence where it cannot work."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from normeq.errors import UsageError, reason

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def compiled(net: ModuleT) -> ModuleT:
    """Return a network that computes the same, compiled at its first call.

    Tried on a single addition first, so that a machine without a compiler is told at once.
    """

    def increment(x: Tensor) -> Tensor:
        return x + 1

    try:
        torch.compile(increment)(torch.zeros(1))
    except Exception as error:  # whatever the toolchain raises
        raise UsageError(
            f"torch.compile does not work here ({reason(error)}): install a C++ compiler, or leave "
            "--compile out."
        ) from error
    return torch.compile(net)  # type: ignore[return-value]
