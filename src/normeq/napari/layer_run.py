"""A whole layer, denoised in steps that can be watched and stopped."""

from __future__ import annotations

import math
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from normeq import denoise
from normeq._support import memory
from normeq.denoising.lazy import is_lazy
from normeq.errors import Cancelled, InputError
from normeq.images.zarr_pyramid import block_means, shrink_factors
from normeq.napari.layer_image import DenoiseSettings, LayerImage
from normeq.napari.layer_walk import walk_of

# Seconds between two reports of progress, at most.
_BREATH = 0.1
# Pixels that are averaged at once into the next level of a pyramid.
_AVERAGED = 2**24
# Contrast limits of what was removed leave out this share of its pixels; how many are looked at.
_CUT, _SAMPLED = 0.005, 2**18


@dataclass(frozen=True)
class LayerResult:
    """A denoised layer.

    Attributes
    ----------
    levels
        The result, finest level first; one level for a layer that is not a pyramid.
    noise
        What was found out about the noise, in a line for each channel.
    removed
        What was removed, if it was asked for: input minus result.
    removed_reach
        Nearly all that was removed lies between its negative and itself.
    """

    levels: list[Any]
    noise: list[str]
    removed: Any = None
    removed_reach: float = 1.0


def denoise_in_steps(
    image: LayerImage,
    settings: DenoiseSettings,
    *,
    coarser: Sequence[tuple[int, ...]] = (),
    with_removed: bool = False,
    cancel: threading.Event | None = None,
) -> Generator[float, None, LayerResult]:
    """Denoise a layer in another thread; yield ten times a second the share that is done.

    Parameters
    ----------
    image, settings
        What to denoise, and how.
    coarser
        Shapes of the coarser levels of a pyramid.
    with_removed
        Whether to return what was removed too.
    cancel
        Ends the run with `normeq.errors.Cancelled` when it is set, as closing the generator does.
    """
    stop = threading.Event() if cancel is None else cancel
    shares: queue.SimpleQueue[float] = queue.SimpleQueue()
    share = 0.0
    with ThreadPoolExecutor(1, "normeq") as pool:
        run = pool.submit(_result, image, settings, coarser, with_removed, shares.put, stop)
        try:
            while not run.done():
                with suppress(queue.Empty):
                    share = shares.get(timeout=_BREATH)
                yield share
        except GeneratorExit:
            stop.set()
            raise
    return run.result()


def _result(
    image: LayerImage,
    settings: DenoiseSettings,
    coarser: Sequence[tuple[int, ...]],
    with_removed: bool,
    report: Callable[[float], object],
    cancel: threading.Event,
) -> LayerResult:
    noise = walk_of(image, settings).noise
    clean = _denoised(image, settings, report, cancel)
    removed, reach = _removed(image.array, clean) if with_removed else (None, 1.0)
    if image.has_opacity:
        clean = np.concatenate((clean, np.asarray(image.data[..., 3:])), -1)
    levels = [clean]
    for shape in coarser:
        levels.append(_coarser(levels[-1], shape))
    return LayerResult(levels, noise, removed, reach)


def _denoised(
    image: LayerImage,
    settings: DenoiseSettings,
    report: Callable[[float], object],
    cancel: threading.Event,
) -> NDArray[Any]:
    options: dict[str, Any] = {
        "strength": settings.strength,
        "model": settings.model,
        "axes": image.axes,
        "bayer": settings.bayer,
        "nan": "keep",
        "value_range": settings.value_range,
    }
    if not is_lazy(image.array):
        clean: NDArray[Any] = denoise(
            image.array, settings.sigma, progress=report, cancel=cancel, **options
        )
        return clean
    return _computed(denoise(image.array, settings.sigma, **options), report, cancel)


def _computed(
    lazy: Any, report: Callable[[float], object], cancel: threading.Event
) -> NDArray[Any]:
    """Compute a dask array in threads of this process."""
    import dask.array as da
    from dask.callbacks import Callback

    def before(key: object, graph: object, state: dict[str, Any]) -> None:
        if cancel.is_set():
            raise Cancelled("the run was cancelled.")

    def after(key: object, value: object, graph: object, state: dict[str, Any], _: object) -> None:
        waiting = sum(len(state[name]) for name in ("ready", "waiting", "running"))
        report(len(state["finished"]) / max(1, len(state["finished"]) + waiting))

    result = room_for(lazy.shape, lazy.dtype)
    with Callback(pretask=before, posttask=after):
        da.store(lazy, result, lock=False, scheduler="threads")
    return result


def room_for(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an empty array, in a temporary file if it is too large for memory."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < memory.available() // 2:
        return np.empty(shape, dtype)
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if size > 0.9 * free:
        raise InputError(
            f"the result takes {size / 1e9:.0f} GB, more than is free in memory and in the folder "
            "for temporary files: denoise the file itself with 'normeq denoise'."
        )
    with tempfile.TemporaryFile() as file:  # the array keeps it open
        return np.memmap(file, dtype, "w+", shape=shape)


def _removed(noisy: Any, clean: NDArray[Any]) -> tuple[Any, float]:
    """Return input minus result, lazily for a lazy input, and how large nearly all of it is."""
    dtype = np.float64 if noisy.dtype.itemsize > 4 else np.float32
    removed = noisy.astype(dtype) - clean
    middle = removed
    while middle.ndim > 2:
        middle = middle[len(middle) // 2] if middle.shape[-1] > 3 else middle[..., 0]
    step = max(1, int(math.sqrt(middle.size / _SAMPLED)))
    sampled = np.abs(np.asarray(middle[::step, ::step]))
    known = sampled[np.isfinite(sampled)]
    return removed, float(np.quantile(known, 1 - _CUT)) if known.size else 0.0


def _coarser(fine: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Average a level of a pyramid into the next."""
    coarse = room_for(shape, fine.dtype)
    factors = shrink_factors(fine.shape, shape)
    step = max(1, _AVERAGED // max(1, math.prod(fine.shape[1:]) * factors[0]))
    for start in range(0, shape[0], step):
        rows = slice(start, min(start + step, shape[0]))
        block = (rows, *(slice(0, length) for length in shape[1:]))
        coarse[rows] = block_means(fine, block, factors)
    return coarse
