"""The graph of a lazy result: what dask does to each block of an array, and in which order."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.image_job import ImageJob
from normeq.denoising.units import merged_moments
from normeq.images.source import ImageSource, Pixels

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


def denoised_blocks(image: DaskArray, job: ImageJob) -> DaskArray:
    """Return an array of the same shape that is `image` denoised, perhaps in larger chunks.

    Parameters
    ----------
    image
        Its last axes are rows, columns and, if the job has several, samples, in one chunk.
    job
        Its source is a header alone: the pixels come with the blocks.
    """
    import dask.array as da
    from dask.delayed import delayed

    # One object in the graph: dask brings it, with its weights, to each worker once.
    shared = delayed(job, name=f"normeq-job-{uuid.uuid4().hex}", traverse=False)
    axes = tuple(range(image.ndim))
    leading = axes[: len(job.source.leading)]
    plane = (len(leading), len(leading) + 1)
    moments = _plane_moments(image, shared, leading)
    margin = job.margin if job.denoiser.halo is not None else 0
    image = image.rechunk({axis: _at_least(margin, image.chunks[axis]) for axis in plane})
    depth = {axis: margin if len(image.chunks[axis]) > 1 else 0 for axis in plane}
    seen = da.overlap.overlap(image, depth, "none", allow_rechunk=False)
    result: DaskArray = da.blockwise(
        _denoise_block,
        axes,
        seen,
        axes,
        moments,
        leading,
        *_places(image.chunks[: len(leading) + 2]),
        job=shared,
        margin=tuple(depth[axis] for axis in plane),
        adjust_chunks={axis: image.chunks[axis] for axis in plane},
        concatenate=True,
        align_arrays=False,
        dtype=job.dtype,
        meta=np.empty((0,) * image.ndim, job.dtype),
    )
    return result


def _plane_moments(image: DaskArray, job: Any, leading: tuple[int, ...]) -> DaskArray:
    """Return the moments of each plane, merged from those of its blocks, for the leading axes."""
    import dask.array as da

    axes = tuple(range(image.ndim))
    plane = (len(leading), len(leading) + 1)
    parts = da.blockwise(
        _block_moments,
        (*leading, *plane),
        image,
        axes,
        *_places(image.chunks[: len(leading)]),
        job=job,
        adjust_chunks=dict.fromkeys(plane, 1),
        concatenate=True,
        align_arrays=False,
        dtype=object,
        meta=np.empty((0,) * (len(leading) + 2), object),
    )
    moments: DaskArray = da.reduction(
        parts,
        chunk=_merge_blocks,
        aggregate=_merge_blocks,
        axis=plane,
        dtype=object,
        meta=np.empty((0,) * len(leading), object),
    )
    return moments


def _places(chunks: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return arguments of `blockwise` that tell each block where it is, one for each axis."""
    import dask.array as da

    arguments: list[Any] = []
    for axis, lengths in enumerate(chunks):
        stops = list(accumulate(lengths))
        places = np.empty(len(lengths), object)
        places[:] = [slice(stop - n, stop) for stop, n in zip(stops, lengths, strict=True)]
        arguments += [da.from_array(places, chunks=1), (axis,)]
    return arguments


def _at_least(length: int, chunks: Iterable[int]) -> tuple[int, ...]:
    """Put neighbouring chunks together until each has a length, if the axis is that long.

    >>> _at_least(4, (3, 0, 2, 5, 1, 1))
    (5, 7)
    """
    merged = [0]
    for chunk in chunks:
        if merged[-1] >= max(1, length):
            merged.append(0)
        merged[-1] += chunk
    if len(merged) > 1 and merged[-1] < max(1, length):
        rest = merged.pop()
        merged[-1] += rest
    return tuple(merged)


# What is done to a block ---------------------------------------------------------------------


def _frames(header: ImageSource, places: Sequence[NDArray[Any]]) -> list[int]:
    """Return the frames of a block, given its places along the leading axes."""
    ranges = [range(place.item().start, place.item().stop) for place in places]
    numbers = np.arange(header.frames).reshape(header.leading)
    return [int(frame) for frame in numbers[np.ix_(*ranges)].ravel()] if ranges else [0]


def _as_frames(block: Pixels, header: ImageSource) -> Pixels:
    """Return a block with one axis of frames and one of samples."""
    count = len(header.leading)
    size = (math.prod(block.shape[:count]), *block.shape[count : count + 2], header.samples)
    return block.reshape(size)


def _block_moments(block: Pixels, *places: NDArray[Any], job: ImageJob) -> NDArray[Any]:
    """Return the moments of each plane of a block, as an array with one element for a frame."""
    frames = zip(_frames(job.source, places), _as_frames(block, job.source), strict=True)
    found = [job.moments(frame, pixels) for frame, pixels in frames]
    return _objects(found, (*block.shape[: len(places)], 1, 1))


def _merge_blocks(parts: NDArray[Any], axis: tuple[int, ...], keepdims: bool) -> NDArray[Any]:
    """Merge the moments of the blocks of a plane."""
    leading = parts.shape[:-2]
    found = [
        [merged_moments(samples) for samples in zip(*parts[frame].ravel(), strict=True)]
        for frame in np.ndindex(leading)
    ]
    return _objects(found, (*leading, 1, 1) if keepdims else leading)


def _objects(values: Sequence[object], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array.reshape(shape)


def _denoise_block(
    block: Pixels,
    moments: NDArray[Any],
    *places: NDArray[Any],
    job: ImageJob,
    margin: tuple[int, int],
) -> Pixels:
    """Denoise a block that was read with a margin, given the moments of its planes."""
    *leading, down, right = places
    rows, columns = down.item(), right.item()
    top, left = max(0, rows.start - margin[0]), max(0, columns.start - margin[1])
    frames = _frames(job.source, leading)
    pixels = dict(zip(frames, _as_frames(block, job.source), strict=True))

    def read(frame: int, rows: slice, columns: slice) -> Pixels:
        down = slice(rows.start - top, rows.stop - top)
        part: Pixels = pixels[frame][down, columns.start - left : columns.stop - left]
        return part

    planes = {
        frame: job.planes(frame, of_frame)
        for frame, of_frame in zip(frames, np.ravel(moments), strict=True)
    }
    results = job.denoised(planes, rows, columns, read)
    size = (rows.stop - rows.start, columns.stop - columns.start, *block.shape[len(places) :])
    denoised = np.empty((*block.shape[: len(leading)], *size), job.dtype)
    for target, frame in zip(_as_frames(denoised, job.source), frames, strict=True):
        target[...] = results[frame]
    return denoised
