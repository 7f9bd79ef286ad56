"""How much arithmetic a network does, and how fast the machine can do it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def multiply_adds(net: nn.Module, size: int = 64, channels: int = 1) -> int:
    """Count the multiply-adds of a network's convolutions for each pixel of an image.

    Examples
    --------
    >>> multiply_adds(nn.Conv2d(1, 4, 3, padding=1))
    36
    """
    total = 0

    def count(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        assert isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)
        kernel = layer.weight[0].numel()
        transposed = isinstance(layer, nn.ConvTranspose2d)
        total += (inputs[0] if transposed else output).numel() * kernel

    hooks = [
        layer.register_forward_hook(count)
        for layer in net.modules()
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)
    ]
    with torch.inference_mode():
        level = [1.0] if getattr(net, "takes_sigma", "never") == "always" else []
        net(torch.rand(1, channels, size, size), *level)
    for hook in hooks:
        hook.remove()
    return total // size**2


def bare_convolutions() -> list[tuple[Callable[[], Any], int]]:
    """Return convolutions that come close to what the machine can do, and their operations."""
    listed: list[tuple[Callable[[], Any], int]] = []
    for channels, size in ((64, 128), (128, 64), (256, 32)):
        x = torch.rand(4, channels, size, size).contiguous(memory_format=torch.channels_last)
        weight = torch.rand(channels, channels, 3, 3).contiguous(memory_format=torch.channels_last)
        operations = 2 * x.numel() * channels * 9
        listed.append((partial(F.conv2d, x, weight, padding=1), operations))
    return listed
