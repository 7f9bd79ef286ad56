"""The main job on arrays: ``denoise(λ·y + μ) = λ·denoise(y) + μ``, same kind of array out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, DTypeLike, NDArray

from normeq.denoising.bands import NanPolicy, Run, progress_bar
from normeq.denoising.denoiser import default_model, engine_for
from normeq.errors import InputError, UsageError
from normeq.images.axes import default_axes
from normeq.images.source import Band, IndexedSource, Pixels, checked_dtype


def denoise(
    image: Any,
    sigma: ArrayLike | None = None,
    *,
    model: str | Callable[..., Any] = "default",
    axes: str | None = None,
    channel_axis: int | None = None,
    tile: int | None = None,
    device: str = "auto",
    nan: NanPolicy = "raise",
    output_dtype: DTypeLike | None = None,
    value_range: tuple[float, float] | None = None,
    progress: bool = False,
) -> Any:
    """Denoise an image in its own units: ``denoise(λ·y + μ) = λ·denoise(y) + μ`` for λ > 0.

    Every plane, and every channel of it, is denoised on its own.

    Parameters
    ----------
    image
        Array, tensor, or anything that converts to an array; the same kind comes back. Integers
        (8 to 64 bits) or floats, with any number of axes from two.
    sigma
        Standard deviation of the noise, in the units of the image: one number, or one for each
        plane. Without it the blind model works out the noise by itself.
    model
        A shipped name, a weights file, ``package.module:factory``, a classical method's name, or a
        network or function. ``"default"`` with `sigma` means ``"default-sigma"``.
    axes
        One letter per axis, such as ``"TZYX"``: Y are the rows, X the columns. Without it the
        planes are the last two axes.
    channel_axis
        Position of the channels of a colour image; the planes are the last two other axes.
    tile
        Side of the tiles, in pixels, in which large planes are processed; chosen from memory if
        None. The result does not depend on it.
    device
        Where to compute, as torch names it; ``"auto"`` takes a GPU if there is one.
    nan
        ``"raise"`` refuses NaN and infinite pixels; ``"keep"`` returns them as they are, and fills
        them from their neighbours for the network.
    output_dtype
        Of the result; that of the image if None. Integers are rounded and clipped.
    value_range
        What is 0 and 1 to a network that is not equivariant, which is never normalised unasked.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import numpy as np, normeq
    >>> noisy = np.random.default_rng(0).normal(1000, 5, (32, 32))
    >>> clean = normeq.denoise(noisy, model="median_filter")
    >>> bool(clean.std() < noisy.std() / 2)
    True
    """
    array, restore = _as_array(image)
    engine = engine_for(
        default_model(model, sigma), device=device, tile=tile, value_range=value_range
    )
    source = ArraySource(array, _axes(array, axes, channel_axis))
    dtype = source.dtype if output_dtype is None else np.dtype(output_dtype)
    run = Run(engine, source, sigma, nan=nan, dtype=checked_dtype(dtype, "output_dtype"))
    output = np.empty(array.shape, dtype)
    with progress_bar(source.pixels, progress) as bar:
        for band in run.bands():
            source.place(output, band)
            bar.update(band.pixels.size)
    run.log_clipped("the image")
    return restore(output)


class ArraySource(IndexedSource):
    """An array in memory, seen as an image."""

    def __init__(self, array: NDArray[Any], axes: str) -> None:
        super().__init__(array.shape, checked_dtype(array.dtype, "the image"), axes)
        self._array = array

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        selected = self._array[self.index(frame, slice(start, stop))]
        return self.to_plane(np.asarray(selected, dtype=self.dtype))

    def place(self, output: NDArray[Any], band: Band) -> None:
        """Store a band in an array of the same shape."""
        rows = slice(band.start, band.start + len(band.pixels))
        output[self.index(band.frame, rows)] = self.from_plane(band.pixels)


def _axes(array: NDArray[Any], axes: str | None, channel_axis: int | None) -> str:
    """Name the axes of an array from what the caller says of them."""
    if axes is not None and channel_axis is not None:
        raise UsageError("give axes or channel_axis, not both: axes='YXC' says where channels are.")
    if axes is not None:
        return axes
    if channel_axis is None:
        return default_axes(array.shape, "pass channel_axis=-1")
    if not -array.ndim <= channel_axis < array.ndim or array.ndim < 3:
        raise UsageError(f"channel_axis {channel_axis} does not exist in shape {array.shape}.")
    channel = channel_axis % array.ndim
    letters = "Q" * (array.ndim - 3) + "YX"
    return f"{letters[:channel]}C{letters[channel:]}"


def _as_array(image: Any) -> tuple[NDArray[Any], Callable[[NDArray[Any]], Any]]:
    """Return an image as an array, and what turns an array into the image's kind again."""
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
