"""Kinds of arrays (NumPy, torch, dask, xarray): brought to one, and back again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from normeq.denoising.lazy import is_lazy
from normeq.errors import InputError, UsageError
from normeq.images.axes import COLORS, axes_from_names, checked_axes, default_axes


def axes_of(image: Any, array: Any, axes: str | None, channel_axis: int | None) -> str:
    """Name the axes of an array from what the caller, or the image itself, says of them."""
    if axes is not None and channel_axis is not None:
        raise UsageError("pass axes or channel_axis, not both: axes='YXC' says where channels are.")
    if axes is not None:
        return checked_axes(axes, tuple(array.shape))
    if channel_axis is None:
        named = axes_from_names(image.dims) if _is_labelled(image) else None
        return named or default_axes(array.shape, "pass channel_axis=-1")
    if not -array.ndim <= channel_axis < array.ndim or array.ndim < 3:
        raise UsageError(f"channel_axis {channel_axis} does not exist in shape {array.shape}.")
    channel = channel_axis % array.ndim
    letters = "Q" * (array.ndim - 3) + "YX"
    kind = "S" if array.shape[channel] == COLORS else "C"
    return f"{letters[:channel]}{kind}{letters[channel:]}"


def _is_labelled(image: object) -> bool:
    """Tell whether an image is an `xarray.DataArray`, without importing xarray."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(image, xarray.DataArray)


def as_array(image: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return an image as an array, and what turns an array into the image's kind again."""
    if isinstance(image, str | os.PathLike):
        raise UsageError(
            f"arrays are needed: for the file '{os.fspath(image)}' call normeq.denoise_files, "
            "or pass normeq.images.read(...)."
        )
    if _is_labelled(image):
        array, restore = as_array(image.data)
        return array, lambda output: image.copy(data=restore(output))
    if is_lazy(image):
        return image, lambda output: output
    if isinstance(image, torch.Tensor):
        plain = image.detach().cpu()
        half = plain.dtype == torch.bfloat16  # which NumPy does not have
        array = (plain.float() if half else plain).numpy()

        def restore(output: NDArray[Any]) -> torch.Tensor:
            tensor = torch.from_numpy(output).to(image.device)
            return tensor.to(torch.bfloat16) if half else tensor

        return array, restore
    if isinstance(image, np.ma.MaskedArray):
        raise InputError("masked arrays are not denoised: pass image.filled(nan) with nan='keep'.")
    array = np.asarray(image)
    if type(image) is not np.ndarray and hasattr(image, "__array_wrap__"):
        return array, image.__array_wrap__
    return array, lambda output: output
