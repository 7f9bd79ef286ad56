"""Dead ReLUs: channels that are zero for every image, so that no gradient revives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def watching_relus(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record for every ReLU, by its name, which channels are ever above zero.

    Examples
    --------
    >>> import torch
    >>> net = nn.Sequential(nn.ReLU())
    >>> with watching_relus(net) as passing:
    ...     _ = net(torch.tensor([[1.0, -1.0], [2.0, -2.0]]))
    >>> passing
    {'0': tensor([ True, False])}
    """
    passing: dict[str, Tensor] = {}

    def watch(name: str, relu: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def note(_: nn.Module, __: Any, output: Tensor) -> None:
            passes = (output > 0).movedim(1, 0).flatten(1).any(1)
            passing[name] = passes | passing.get(name, passes)

        return relu.register_forward_hook(note)

    relus = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, nn.ReLU)]
    hooks = [watch(name, relu) for name, relu in relus]
    try:
        yield passing
    finally:
        for hook in hooks:
            hook.remove()
