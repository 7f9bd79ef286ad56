"""The main job on dask arrays: ``denoise(x).compute() = denoise(x.compute())``, block by block.

A block is read with the surroundings that its result depends on. The statistics of its plane are
merged from those of all blocks of the plane, when the result is computed.
"""

from __future__ import annotations

import logging
import math
import sys
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from normeq.denoising.error_bars import ErrorBars
from normeq.denoising.image_job import ImageJob
from normeq.denoising.image_parts import parts_of, planes_of
from normeq.denoising.lazy_blocks import denoised_blocks
from normeq.denoising.mosaics import start_walk
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions
from normeq.errors import InputError
from normeq.images.axes import color_axis
from normeq.images.bayer import PHASES, BayerSource
from normeq.images.source import ImageSource, Pixels, checked_dtype
from normeq.noise.sampling import sampled_regions

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

log = logging.getLogger(__name__)

# The pixels from which the noise is estimated are computed together, up to this many.
_MOST_SAMPLED = 2**26


def is_lazy(image: object) -> TypeGuard[DaskArray]:
    """Tell whether an image is a dask array, without importing dask."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(image, dask.Array)


def denoise_lazily(
    array: DaskArray,
    axes: str,
    choice: Choice,
    noise: NoiseOptions,
    options: WalkOptions,
    probes: int | None = None,
) -> list[DaskArray]:
    """Return a dask array that is `array` denoised, of the same shape and chunks.

    Its error bars come second, if they are wanted.

    The noise is estimated at once, from a part of the pixels that the shape alone decides.

    Parameters
    ----------
    array
        Planes of any size in chunks of any size.
    axes
        One letter for each axis.
    choice, noise, options
        What the caller says about the model, the noise and the run.
    probes
        From how many probes error bars are estimated; None if they are not wanted.
    """
    import dask.array as da

    if any(math.isnan(length) for length in array.shape):
        raise InputError(
            "the array has chunks of unknown size: call its compute_chunk_sizes() first."
        )
    colors = color_axis(axes, choice.check(noise).channels)
    last = f"YX{colors}"
    order = [place for place, axis in enumerate(axes) if axis not in last]
    letters = "".join(axes[place] for place in order)
    order += [axes.index(axis) for axis in last]
    image = da.transpose(array, order)
    header = _Header(image.shape, image.dtype, f"{letters}YX{'S' * len(colors)}")
    if options.bayer not in (None, "none"):
        results = _denoised_mosaics(image, header, choice, noise, options, probes)
    else:
        results = _denoised(image, header, choice, noise, options, probes)
    back = np.argsort(order).tolist()
    return [da.transpose(result, back).rechunk(array.chunks) for result in results]


def _denoised(
    image: DaskArray,
    header: _Header,
    choice: Choice,
    noise: NoiseOptions,
    options: WalkOptions,
    probes: int | None,
) -> list[DaskArray]:
    """Denoise an array whose last axes are rows, columns and, where it has them, samples."""
    walk = start_walk(_SampledImage(image, header), choice, noise, options)
    for line in walk.decisions():
        log.info(line)
    job = ImageJob(walk.denoiser, header, walk.noise, options, walk.plan)
    rows, columns, *samples = range(len(header.leading), image.ndim)
    whole = dict.fromkeys(samples, -1)
    if job.denoiser.halo is None:
        whole |= {rows: -1, columns: -1}
        if len(image.chunks[rows]) * len(image.chunks[columns]) > 1:
            walk.log_whole_planes()
    jobs = [job]
    if probes is not None:
        jobs.append(ErrorBars.of(walk, noise, probes).instead_of(job))
    return [denoised_blocks(image.rechunk(whole), each) for each in jobs]


def _denoised_mosaics(
    image: DaskArray,
    header: _Header,
    choice: Choice,
    noise: NoiseOptions,
    options: WalkOptions,
    probes: int | None,
) -> list[DaskArray]:
    """Denoise the four planes of camera mosaics one by one."""
    import dask.array as da

    BayerSource(header)  # which refuses what is no mosaic
    phases = da.stack([image[..., row::2, column::2] for row, column in PHASES], axis=-3)
    axes = f"{'Q' * len(header.leading)}CYX"  # the planes of one colour share a noise model
    planes = _Header(phases.shape, phases.dtype, axes)
    results = _denoised(phases, planes, choice, noise, replace(options, bayer="none"), probes)
    return [_put_together(result) for result in results]


def _put_together(planes: DaskArray) -> DaskArray:
    """Turn the four planes of mosaics into mosaics again."""
    rows = [
        _alternating([planes[..., place, :, :] for place in places], -1)
        for places in ((0, 1), (2, 3))  # of PHASES
    ]
    return _alternating(rows, -2)


def _alternating(arrays: list[DaskArray], axis: int) -> DaskArray:
    """Put two arrays together whose elements alternate along an axis."""
    import dask.array as da

    shape = list(arrays[0].shape)
    shape[axis] *= 2
    place = len(shape) + axis + 1
    pairs = da.stack(arrays, axis=place).rechunk({place: -1})
    alternating: DaskArray = pairs.reshape(shape)
    return alternating


class _Header(ImageSource):
    """What is known of an image without its pixels, which come block by block."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], axes: str) -> None:
        super().__init__(shape, checked_dtype(dtype, "the image"), axes)

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        raise NotImplementedError


class _SampledImage(_Header):
    """A dask array of which some regions are computed: those that an estimate looks at."""

    def __init__(self, image: DaskArray, header: _Header) -> None:
        super().__init__(header.shape, header.dtype, header.axes)
        self._image = image

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame."""
        box = _Box.around(frame, rows, columns)
        region = self._sampled[box] if box in self._sampled else self._region(box).compute()
        pixels = np.asarray(region, self.dtype)[rows.start - box.top :, columns.start - box.left :]
        return pixels.reshape(*pixels.shape[:2], self.samples)

    def _region(self, box: _Box) -> DaskArray:
        place = [int(index) for index in np.unravel_index(box.frame, self.leading or (1,))]
        rows, columns = slice(box.top, box.bottom), slice(box.left, box.right)
        region: DaskArray = self._image[(*place[: len(self.leading)], rows, columns)]
        return region

    @cached_property
    def _sampled(self) -> dict[_Box, Pixels]:
        """All regions that are going to be asked for, computed at once."""
        from dask.base import compute

        parts = [planes_of(self), *parts_of(self, each_plane=False).values()]
        wanted = {
            _Box.around(part[region.frame][0], region.rows, region.columns)
            for part in parts
            for region in sampled_regions(len(part), self.height, self.width)
        }
        if sum(box.size for box in wanted) * self.samples > _MOST_SAMPLED:
            return {}
        return dict(zip(wanted, compute(*map(self._region, wanted)), strict=True))


class _Box(NamedTuple):
    """A rectangle of one frame."""

    frame: int
    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def around(cls, frame: int, rows: slice, columns: slice) -> _Box:
        """Return a rectangle that starts on even numbers, as the colours of a mosaic do."""
        top, left = rows.start // 2 * 2, columns.start // 2 * 2
        return cls(frame, top, rows.stop, left, columns.stop)

    @property
    def size(self) -> int:
        """How many pixels it has."""
        return (self.bottom - self.top) * (self.right - self.left)
