"""Whether an exported network gives the same output as the original, measured before it is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from normeq.equivariance.worst_errors import image_spread
from normeq.errors import ResultError
from normeq.exporting.open_sizes import ExportedNetwork

_LOG = logging.getLogger(__name__)

#: Samples, height and width: single pixels, lines, odd sizes, multiples of common strides.
SIZES = ((1, 1, 1), (1, 1, 9), (2, 7, 3), (1, 16, 24), (3, 33, 50), (1, 64, 41))
#: Largest difference, in spreads of the image.
TOLERANCE = 1e-4


@torch.no_grad()
def check_agreement(net: ExportedNetwork, exported: Callable[..., Tensor]) -> float:
    """Compare an exported network with the one it came from; raise `ResultError` if they differ.

    The largest difference is returned, in spreads of the image. Sizes that the network
    itself does not take are left out.

    Parameters
    ----------
    net
        What was exported.
    exported
        Called with the same inputs.
    """
    _LOG.info("comparing what was exported with PyTorch at %d sizes", len(SIZES))
    worst = 0.0
    for size in SIZES:
        inputs = net.example(*size, seed=sum(size))
        try:
            expected = net(*inputs)
        except (RuntimeError, ValueError, IndexError):
            continue
        try:
            output = exported(*inputs)
        except AssertionError:  # a guard that torch.export found necessary
            _LOG.warning("once exported, %s refuses images of %d x %d pixels", net.name, *size[1:])
            continue
        difference = (output - expected).abs().max().item()
        relative = difference / image_spread(inputs[0].double())
        if not relative <= TOLERANCE:
            height, width = size[1:]
            raise ResultError(
                f"the exported {net.name} differs from the original by {relative:.1e} of the "
                f"image's spread at {height} x {width} pixels: nothing was written."
            )
        worst = max(worst, relative)
    _LOG.info("they agree within %.0e of the image's spread", worst)
    return worst
