"""Four networks of the literature, small and faithful, for what does not depend on training.

Their layers, normalisations, attention, padding and skips are the originals'; only widths and
depths are small. `random_network` gives every parameter a value that training could have left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from normeq.reproduce.networks.dncnn import DnCNN
from normeq.reproduce.networks.nlrn import NLRN
from normeq.reproduce.networks.restormer import Restormer
from normeq.reproduce.networks.swinir import SwinIR

__all__ = ["NLRN", "DnCNN", "Restormer", "SwinIR", "random_network"]

Network = TypeVar("Network", bound=nn.Module)


def random_network(factory: Callable[[], Network], seed: int = 0) -> Network:
    """Build a network in eval mode with seeded random weights, and nothing left at 0 or 1.

    Biases, gains and running statistics, which start at zero and one, are drawn too, for with
    those a property may hold that no trained network would have.

    Examples
    --------
    >>> import torch
    >>> net = random_network(DnCNN)
    >>> bool((net.noise[0].bias == random_network(DnCNN).noise[0].bias).all())
    True
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        net = factory().eval()
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean = 0.2 * torch.randn(module.num_features)
                module.running_var = 0.5 + torch.rand(module.num_features)
        for name, parameter in net.named_parameters():
            if name.split(".")[-1] == "bias":
                parameter.normal_(0.0, 0.1)
    return net
