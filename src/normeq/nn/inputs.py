"""What can be told of a network's input by looking at the network."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.conv import _ConvNd


def image_channels(net: nn.Module) -> int | None:
    """Return how many channels a network takes: as declared, or by its first convolution.

    None if neither tells.

    Examples
    --------
    >>> from torch import nn
    >>> image_channels(nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 1, 1)))
    3
    """
    layers = (layer for layer in net.modules() if isinstance(layer, _ConvNd))
    first = next((layer.in_channels for layer in layers), None)
    declared = getattr(net, "channels", first)
    return None if declared is None else int(declared)
