"""A colour network that begins as a gray one, so that no hour of the gray training is lost."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

import normeq
from normeq.models.unet import UNet

_COLORS = 3


@torch.no_grad()
def in_color(gray: UNet) -> UNet:
    """Return the network that corrects every colour as `gray` corrects the mean of the colours.

    ``color(y) = y + gray(m) - m`` with the mean ``m`` of the channels of ``y``, whose noise has
    ``1/√3`` of their level if it is independent. Training adds what distinguishes the colours.

    Parameters
    ----------
    gray
        A network of one channel in the residual form.

    Examples
    --------
    >>> import torch
    >>> import normeq
    >>> gray = normeq.create("unet", "norm-equiv-residual", widths=(8, 16), blocks=1)
    >>> y = torch.rand(1, 3, 8, 8)
    >>> mean = y.mean(1, keepdim=True)
    >>> torch.allclose(in_color(gray)(y), y + gray(mean) - mean, atol=1e-6)
    True
    """
    config = {**gray.config, "channels": _COLORS, "separate_channels": True}
    color = normeq.create(gray.architecture, **config)
    assert isinstance(color, UNet)
    ends = ("head.", "tail.")
    body = {k: t for k, t in gray.state_dict().items() if not k.startswith(ends)}
    color.load_state_dict(body, strict=False)
    # The channels are in the order: the folded pixels of each colour, levels, correlations.
    pixels = gray.unshuffle**2
    has_level = gray.takes_sigma != "never"
    [kernels, tail] = (cast("Tensor", layer.weight) for layer in (gray.head, gray.tail))
    parts: list[int] = [pixels, has_level, gray.maps - has_level]
    image, level, correlation = torch.split(kernels, parts, 1)
    color.head.weight = torch.cat(
        (
            *[image / _COLORS] * _COLORS,
            *[level / (_COLORS * math.sqrt(_COLORS))] * _COLORS,
            correlation / math.sqrt(_COLORS),
        ),
        1,
    )
    cast("Tensor", color.tail.weight).copy_(torch.cat([tail] * _COLORS))
    return color
