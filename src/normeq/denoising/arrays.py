"""The main job on arrays: ``denoise(λ·y + μ) = λ·denoise(y) + μ``, same kind of array out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, DTypeLike, NDArray

from normeq.denoising.array_kinds import as_array, axes_of
from normeq.denoising.bands import Walk
from normeq.denoising.ensemble import EnsembleSize
from normeq.denoising.error_bars import PROBES, ErrorBars
from normeq.denoising.lazy import denoise_lazily, is_lazy
from normeq.denoising.mosaics import start_walk
from normeq.denoising.noise_options import NoiseName, NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.progress import Progress, progress_report
from normeq.denoising.walk_options import NanPolicy, WalkOptions
from normeq.errors import UsageError
from normeq.images.array import ArraySource
from normeq.images.axes import color_axis
from normeq.images.bayer import Bayer
from normeq.images.source import checked_dtype
from normeq.noise import NoiseModel

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from xarray import DataArray

log = logging.getLogger(__name__)


class DenoiseOptions(TypedDict, total=False):
    """The keyword arguments of `denoise`, for type checkers."""

    noise: NoiseName | NoiseModel
    strength: float
    each_plane: bool
    model: str | Callable[..., Any]
    ensemble: EnsembleSize
    axes: str | None
    channel_axis: int | None
    bayer: Bayer | None
    tile: int | None
    device: str
    compile: bool
    nan: NanPolicy
    output_dtype: DTypeLike | None
    value_range: tuple[float, float] | None
    progress: Progress
    cancel: threading.Event | None
    probes: int


@overload
def denoise(
    image: torch.Tensor,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[False] = False,
    **options: Unpack[DenoiseOptions],
) -> torch.Tensor: ...
@overload
def denoise(
    image: DaskArray,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[False] = False,
    **options: Unpack[DenoiseOptions],
) -> DaskArray: ...
@overload
def denoise(
    image: DataArray,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[False] = False,
    **options: Unpack[DenoiseOptions],
) -> DataArray: ...
@overload
def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[False] = False,
    **options: Unpack[DenoiseOptions],
) -> NDArray[Any]: ...
@overload
def denoise(
    image: torch.Tensor,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[True],
    **options: Unpack[DenoiseOptions],
) -> tuple[torch.Tensor, torch.Tensor]: ...
@overload
def denoise(
    image: DaskArray,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[True],
    **options: Unpack[DenoiseOptions],
) -> tuple[DaskArray, DaskArray]: ...
@overload
def denoise(
    image: DataArray,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[True],
    **options: Unpack[DenoiseOptions],
) -> tuple[DataArray, DataArray]: ...
@overload
def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    return_std: Literal[True],
    **options: Unpack[DenoiseOptions],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def denoise(
    image: Any,
    sigma: ArrayLike | None = None,
    *,
    noise: NoiseName | NoiseModel = "auto",
    strength: float = 1.0,
    each_plane: bool = False,
    model: str | Callable[..., Any] = "default",
    ensemble: EnsembleSize = 1,
    axes: str | None = None,
    channel_axis: int | None = None,
    bayer: Bayer | None = None,
    tile: int | None = None,
    device: str = "auto",
    compile: bool = False,
    nan: NanPolicy = "raise",
    output_dtype: DTypeLike | None = None,
    value_range: tuple[float, float] | None = None,
    progress: Progress = False,
    cancel: threading.Event | None = None,
    return_std: bool = False,
    probes: int = PROBES,
) -> Any:
    """Denoise an image in its own units: ``denoise(λ·y + μ) = λ·denoise(y) + μ`` for λ > 0.

    Every plane, and every channel of it, is denoised on its own, except for the three colours of a
    photograph, which ``"default"`` sees together.

    Parameters
    ----------
    image
        Array, tensor, or anything that converts to an array; the same kind comes back. Integers
        (8 to 64 bits) or floats, with any number of axes from two. The result of a dask array is
        lazy: only the pixels that the noise is estimated from are computed at once. The dims of
        an `xarray.DataArray` name its axes.
    sigma
        Standard deviation of the noise, in the units of the image: one number, one for each
        plane, or a map of the shape of a plane or of the image; ``"auto"`` estimates one level.
    noise
        What kind of noise there is: ``"auto"`` finds out from the image, and logs what it found;
        ``"gaussian"``: of one level, which the model works out by itself; ``"poisson-gaussian"``:
        its variance grows with the signal; ``"learned"``: a transform fitted to the image; or a
        `normeq.noise.NoiseModel`. With `sigma`, noise has the stated level, and ``"auto"`` finds
        its correlation alone.
    strength
        Factor on the noise level that the model is told: above 1 removes more.
    each_plane
        Whether the noise of every plane is estimated on its own, not that of a whole stack.
    model
        A shipped name, a weights file, ``package.module:factory``, a classical method's name, or a
        network or function. ``"default"`` chooses among the shipped networks by what the noise is,
        and whether the image is in colour. So does ``"default-fast"``, which has a smaller network
        for white noise in gray images.
    ensemble
        How many symmetries of the square the result is the mean over: 1, 2 or 8. Eight take eight
        times as long, for a little less error.
    axes
        One letter per axis, such as ``"TZYX"``: Y are the rows, X the columns, S the colours red,
        green and blue. Other channels, C, are never mixed, unless the model takes several. Without
        it the planes are the last two axes.
    channel_axis
        Position of the channels of a colour image; the planes are the last two other axes. Three
        channels count as colours.
    bayer
        The pattern of a camera's raw image, such as ``"RGGB"``, whose four planes are denoised
        one by one; ``"none"`` for an image that only looks like one.
    tile
        Side of the tiles, in pixels, in which large planes are processed; chosen from memory if
        None. The result does not depend on it.
    device
        Where to compute, as torch names it; ``"auto"`` takes a GPU if there is one.
    compile
        Whether the network goes through `torch.compile`, which pays for many large images.
    nan
        ``"raise"`` refuses NaN and infinite pixels; ``"keep"`` returns them as they are, and fills
        them from their neighbours for the network.
    output_dtype
        Of the result; that of the image if None. Integers are rounded and clipped.
    value_range
        What is 0 and 1 to a network that is not equivariant, which is never normalised unasked.
    progress
        Whether to show a progress bar, or a function to call with the share of the work that is
        done, from 0 to 1.
    cancel
        An event that ends the run with `normeq.errors.Cancelled` when another thread sets it.
    return_std
        Whether to return error bars too, ``(clean, std)``: the standard deviation that the noise
        of the image leaves in each pixel, in the units of the image and floating point, with
        ``std(λ·y + μ) = λ·std(y)``. Bias, often as large, is not included.
    probes
        How many probes the error bars are estimated from; each costs as much time as denoising.
        The standard error of a pixel's ``std`` is at most ``std / √(2·probes)``.

    Examples
    --------
    >>> import numpy as np, normeq
    >>> noisy = np.random.default_rng(0).normal(1000, 5, (32, 32))
    >>> clean = normeq.denoise(noisy, model="median_filter")
    >>> bool(clean.std() < noisy.std() / 2)
    True
    """
    array, restore = as_array(image)
    choice = Choice(model, device, compile, value_range, ensemble)
    options = NoiseOptions(sigma, noise, strength, each_plane)
    axes = axes_of(image, array, axes, channel_axis)
    out = None if output_dtype is None else checked_dtype(np.dtype(output_dtype), "output_dtype")
    how = WalkOptions(nan, out, tile, value_range, bayer, cancel)
    if is_lazy(array):
        if progress or cancel is not None:
            raise UsageError(
                "a dask array is denoised when it is computed: leave out progress and cancel, and "
                "watch or stop the computation with dask."
            )
        arrays = denoise_lazily(array, axes, choice, options, how, probes if return_std else None)
        results = tuple(restore(result) for result in arrays)
        return results if return_std else results[0]
    source = array_source(choice.check(options).channels, array, axes)
    walk = start_walk(source, choice, options, how)
    for line in walk.decisions():
        log.info(line)
    if not return_std:
        with progress_report(source.pixels, progress) as report:
            return restore(_filled(walk, source, report))
    bars = ErrorBars.of(walk, options, probes)
    with progress_report(source.pixels * (1 + bars.runs), progress) as report:
        clean = _filled(walk, source, report)
        std = _filled(bars.instead_of(walk), source, lambda pixels: report(pixels * bars.runs))
    return restore(clean), restore(std)


def walk_over(
    image: Any,
    choice: Choice,
    noise: NoiseOptions,
    how: WalkOptions,
    *,
    axes: str | None = None,
    channel_axis: int | None = None,
) -> Walk:
    """Prepare the walk over an array that is in memory.

    Parameters
    ----------
    image, axes, channel_axis
        See `denoise`.
    choice, noise, how
        What the caller says about the model, the noise and the run.
    """
    array, _ = as_array(image)
    if is_lazy(array):
        raise UsageError("a dask array has to be computed first: pass some of its planes.")
    letters = axes_of(image, array, axes, channel_axis)
    source = array_source(choice.check(noise).channels, array, letters)
    return start_walk(source, choice, noise, how)


def _filled(walk: Walk, source: ArraySource, report: Callable[[float], object]) -> NDArray[Any]:
    """Return the result of a walk as an array."""
    output = source.empty(walk.dtype)
    for band in walk.bands():
        source.place(output, band)
        report(band.pixels.size)
    walk.log_clipped("the image")
    return output


def array_source(channels: int, array: Any, axes: str) -> ArraySource:
    """Return an array as an image, its channels together if they are colours.

    `channels` is the number of those that the denoiser sees together.
    """
    colors = color_axis(axes, channels)
    return ArraySource(array, axes.replace(colors, "S") if colors else axes)
