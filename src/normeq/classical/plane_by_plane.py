"""What all classical methods share: arrays of any kind in, plane by plane, the same kind out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from normeq.errors import InputError, UsageError

__all__ = ["Array", "each_plane", "positive_sigma"]

Array = TypeVar("Array", Tensor, np.ndarray[Any, Any])


def each_plane(image: Array, method: Callable[[Tensor], Tensor]) -> Array:
    """Apply a method to the last two axes of an image, looping over the leading ones.

    Nothing is rescaled or clipped. Single and double precision are kept; half precision is
    computed and returned in single, integers in double precision. A tensor on another device
    is computed on the processor and sent back.

    Parameters
    ----------
    image
        NumPy array or tensor of shape ``(..., height, width)``.
    method
        Takes and returns one floating-point tensor of shape ``(height, width)``.

    Examples
    --------
    >>> import numpy as np
    >>> each_plane(np.arange(4).reshape(1, 2, 2), lambda plane: plane + 0.5)
    array([[[0.5, 1.5],
            [2.5, 3.5]]])
    """
    tensor = _floating(_as_tensor(image))
    if tensor.ndim < 2 or tensor.numel() == 0:
        raise InputError(
            f"an image needs at least two axes and one pixel; this one has shape "
            f"{tuple(tensor.shape)}."
        )
    if not bool(torch.isfinite(tensor).all()):
        raise InputError(
            "the image contains NaN or infinite values: replace them before denoising."
        )
    planes = tensor.reshape(-1, *tensor.shape[-2:])
    clean = torch.stack([method(plane) for plane in planes]).reshape(tensor.shape)
    return clean.to(image.device) if isinstance(image, Tensor) else clean.numpy()


def positive_sigma(sigma: float) -> float:
    """Return sigma as a float, after checking that it can be a noise's standard deviation."""
    value = float(sigma)
    if not math.isfinite(value) or value <= 0.0:
        raise UsageError(f"sigma is {value:g}, but it must be a positive number.")
    return value


def _as_tensor(image: Array) -> Tensor:
    if isinstance(image, Tensor):
        return image.detach().cpu()
    # A copy in native order: torch refuses swapped bytes, reversed axes and read-only memory.
    return torch.from_numpy(np.array(image, dtype=image.dtype.newbyteorder("="), order="C"))


def _floating(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.to(torch.float64)
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
