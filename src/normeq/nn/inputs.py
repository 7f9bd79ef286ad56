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
    first = _first_convolution(net)
    declared = getattr(net, "channels", None if first is None else first.in_channels)
    return None if declared is None else int(declared)


def spatial_axes(net: nn.Module) -> int:
    """Return how many spatial axes a network's input has: those of its first convolution, or 2.

    Examples
    --------
    >>> from torch import nn
    >>> spatial_axes(nn.Conv1d(1, 8, 3))
    1
    """
    first = _first_convolution(net)
    return 2 if first is None else len(first.kernel_size)


def _first_convolution(net: nn.Module) -> _ConvNd | None:
    return next((layer for layer in net.modules() if isinstance(layer, _ConvNd)), None)
