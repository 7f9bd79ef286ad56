"""The walk over an image: bands of rows in, the same bands denoised out.

A plane is read once for its statistics, and once more, tile by tile, for the denoiser.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.assumed_noise import AssumedNoise
from normeq.denoising.denoiser import Denoiser
from normeq.denoising.missing import FILL_DEPTH, keep_apart, missing_pixels
from normeq.denoising.plane import Plane
from normeq.denoising.plane_noise import PlaneNoise
from normeq.denoising.tiles import Plan, Tile, plan_tiles, reach, spans, widened
from normeq.denoising.units import (
    Floats,
    Mask,
    Statistics,
    choose_units,
    statistics,
    to_dtype,
)
from normeq.errors import Cancelled, InputError, ResultError, UsageError
from normeq.images.bayer import BAYER, Bayer
from normeq.images.source import Band, ImageSource, Pixels

log = logging.getLogger(__name__)

NanPolicy = Literal["raise", "keep"]

# Statistics are taken of this many pixels at a time, which need several copies of themselves.
_PIXELS_IN_DOUBLE = 2**18


@dataclass(frozen=True)
class WalkOptions:
    """How an image is denoised.

    Attributes
    ----------
    nan
        Whether a pixel without a value is an error, or stays as it is.
    dtype
        Of the result; that of the image if None.
    tile
        Side of the tiles in pixels; None lets memory decide.
    value_range
        What is 0 and 1 to a network that is not equivariant, in the image's units.
    bayer
        The pattern of a camera's raw image; None if it is not known to be one.
    cancel
        Set by another thread, it ends the walk with `normeq.errors.Cancelled`.
    """

    nan: NanPolicy = "raise"
    dtype: np.dtype[Any] | None = None
    tile: int | None = None
    value_range: tuple[float, float] | None = None
    bayer: Bayer | None = None
    cancel: threading.Event | None = None

    def __post_init__(self) -> None:
        if self.nan not in ("raise", "keep"):
            raise UsageError(f"nan is {self.nan!r}, but must be 'raise' or 'keep'.")
        if self.tile is not None and self.tile < 1:
            raise UsageError(f"tile is {self.tile}, but a tile has at least 1 pixel to a side.")
        if self.bayer is not None and self.bayer not in BAYER:
            raise UsageError(f"bayer is {self.bayer!r}: use one of {', '.join(BAYER)}.")


class Walk:
    """An image being denoised; `bands` gives it in order, `clipped` counts as it goes.

    Parameters
    ----------
    denoiser, source, noise
        What denoises, the image, and what is assumed of its noise.
    options
        See `WalkOptions`.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        source: ImageSource,
        noise: AssumedNoise,
        options: WalkOptions | None = None,
    ) -> None:
        options = WalkOptions() if options is None else options
        if source.pixels == 0:
            raise InputError(f"the image is empty: its shape is {source.shape}.")
        self.denoiser = denoiser
        self.source = source
        self.noise = noise
        self.options = options
        self.dtype = source.dtype if options.dtype is None else options.dtype
        self.clipped = 0
        self.groups = _sample_groups(denoiser, source)
        self.plan: Plan = plan_tiles(denoiser, source, options.tile)

    def bands(self, done: Container[tuple[int, int]] = ()) -> Iterator[Band]:
        """Yield the denoised bands in order, without those whose (frame, start) are in `done`."""
        height, step = self.source.height, self.plan.rows
        for first in range(0, self.source.frames, self.plan.frames):
            frames = range(first, min(first + self.plan.frames, self.source.frames))
            wanted = {
                start: left
                for start in range(0, height, step)
                if (left := [frame for frame in frames if (frame, start) not in done])
            }
            some = _Frames(self, sorted({frame for left in wanted.values() for frame in left}))
            for start, left in wanted.items():
                yield from some.denoised(left, start, min(start + step, height))

    def stop_if_cancelled(self) -> None:
        """Raise `Cancelled` if another thread has asked for it."""
        if self.options.cancel is not None and self.options.cancel.is_set():
            raise Cancelled("the run was cancelled.")

    def log_clipped(self, what: object) -> None:
        """Say how many pixels were cut off at the limits of the dtype."""
        if self.clipped:
            log.info("%s: %d pixels clipped to the range of %s", what, self.clipped, self.dtype)


def _sample_groups(denoiser: Denoiser, source: ImageSource) -> list[list[int]]:
    """Return the samples that the denoiser sees together; an opacity is not among them."""
    samples = list(range(source.samples - source.alpha))
    if denoiser.channels == 1:
        return [[sample] for sample in samples]
    if len(samples) != denoiser.channels:
        raise UsageError(
            f"{denoiser.name} takes images of {denoiser.channels} channels, and this one has "
            f"{len(samples)}: use a model for gray images, which denoises channel by channel."
        )
    return [samples]


class _Job(NamedTuple):
    """A tile of a plane: what the denoiser gets, and what it must not touch."""

    plane: Plane
    tile: Tile
    values: Floats
    stored: Pixels
    missing: Mask
    #: Noise level, or a map of it ``(1, H, W)``, in the denoiser's units; None if it is not told.
    sigma: Floats | None


class _Frames:
    """Some frames of an image, their statistics known, to be denoised band by band."""

    def __init__(self, walk: Walk, frames: Iterable[int]) -> None:
        self._walk = walk
        self._source = walk.source
        self._whole: dict[int, Pixels] = {}
        self._planes = {
            frame: [self._plane(frame, samples) for samples in walk.groups] for frame in frames
        }

    def _read(self, frame: int, rows: slice) -> Pixels:
        """Read rows of a frame; a frame that was once read whole is not read again."""
        self._walk.stop_if_cancelled()
        if frame in self._whole:
            return self._whole[frame][rows]
        pixels = self._source.read(frame, rows.start, rows.stop)
        if len(pixels) == self._source.height:
            self._whole[frame] = pixels
        return pixels

    # Statistics ------------------------------------------------------------------------------

    def _plane(self, frame: int, samples: list[int]) -> Plane:
        """Pass once over a plane and choose its units."""
        walk = self._walk
        noise = walk.noise.of(frame, samples[0])
        found = [statistics(self._parts(frame, sample, noise)) for sample in samples]
        for channel in found:
            self._check(frame, channel)
        units = choose_units(
            walk.denoiser,
            found,
            noise.level,
            self._source,
            walk.options.value_range,
            stabilised=noise.transform is not None,
        )
        means = (np.array([channel.mean for channel in found]) - units.center) / units.scale
        return Plane(frame, samples, units, means, noise)

    def _parts(self, frame: int, sample: int, noise: PlaneNoise) -> Iterator[tuple[Floats, Mask]]:
        """Yield a plane in parts, as the denoiser will see it but for its units."""
        step = max(1, _PIXELS_IN_DOUBLE // self._source.width)
        for span in spans(self._source.height, self._walk.plan.rows):
            band = self._read(frame, span.kept)[..., sample]
            for start in range(0, len(band), step):
                stored = band[start : start + step]
                missing = missing_pixels(stored, self._source.blank)
                values = stored.astype(np.float64)
                if noise.transform is not None:
                    values = noise.transform.forward(np.where(missing, 0.0, values))
                yield values, missing

    def _check(self, frame: int, plane: Statistics) -> None:
        options, missing = self._walk.options, plane.missing
        if missing and options.nan == "raise":
            raise InputError(
                f"{missing} of the {missing + plane.count} pixels of plane {frame} "
                "are NaN, infinite or marked as missing: fill them, or keep them as they are "
                "with nan='keep' (--nan keep)."
            )
        if missing and self._source.dtype.kind == "f" and self._walk.dtype.kind != "f":
            raise UsageError(
                f"{missing} pixels of plane {frame} are NaN or infinite, which {self._walk.dtype} "
                "cannot hold: choose a floating-point output_dtype."
            )
        if not np.isfinite(plane.spread):
            raise InputError(f"plane {frame} holds values too large for double precision.")

    # Denoising -------------------------------------------------------------------------------

    def denoised(self, frames: Sequence[int], start: int, stop: int) -> list[Band]:
        """Denoise rows ``[start, stop)`` of some of the frames."""
        shape = (stop - start, self._source.width, self._source.samples)
        bands = {frame: Band(frame, start, np.empty(shape, self._walk.dtype)) for frame in frames}
        if self._source.alpha:
            for frame, band in bands.items():
                band.pixels[..., -1] = self._read(frame, slice(start, stop))[..., -1]
        jobs = (job for frame in frames for job in self._jobs(frame, start, stop))
        for alike in _batches(jobs, self._walk.plan.batch):
            for job, pixels in zip(alike, self._results(alike), strict=True):
                rows, columns = job.tile.kept
                inside = slice(rows.start - start, rows.stop - start)
                target = bands[job.plane.frame].pixels
                for sample, channel in zip(job.plane.samples, pixels, strict=True):
                    target[inside, columns, sample] = channel
        return list(bands.values())

    def _jobs(self, frame: int, start: int, stop: int) -> Iterator[_Job]:
        """Cut rows of a frame into tiles, in the denoiser's units and with their holes filled."""
        denoiser, (tall, wide) = self._walk.denoiser, self._walk.plan.tile
        height, width = self._source.height, self._source.width
        halo = denoiser.halo or 0
        depth = FILL_DEPTH if self._walk.options.nan == "keep" else 0
        for top in range(start, stop, tall):
            rows = reach(top, min(top + tall, stop), height, halo, denoiser.stride)
            around = widened(rows, depth, height)
            pixels = self._read(frame, around.read)
            for columns in spans(width, wide, halo, denoiser.stride):
                across = widened(columns, depth, width)
                inside = Tile(around, across).within(rows, columns)
                for plane in self._planes[frame]:
                    stored = np.moveaxis(pixels[:, across.read, plane.samples], -1, 0)
                    missing = missing_pixels(stored, self._source.blank)
                    values = plane.seen(stored, missing)
                    kept = (slice(None), *inside)
                    sigma = plane.sigma(rows.read, columns.read)
                    tile = Tile(rows, columns)
                    yield _Job(plane, tile, values[kept], stored[kept], missing[kept], sigma)

    def _results(self, jobs: Sequence[_Job]) -> Iterator[Pixels]:
        """Denoise tiles of one shape together; yield each in the units and dtype of the image."""
        self._walk.stop_if_cancelled()
        sigma = lengths = None
        if jobs[0].sigma is not None:
            sigma = np.stack([job.sigma for job in jobs if job.sigma is not None])
            if jobs[0].plane.noise.lengths is not None:
                lengths = np.array([job.plane.noise.lengths for job in jobs], np.float64)
        outputs = self._walk.denoiser.run(np.stack([job.values for job in jobs]), sigma, lengths)
        for job, output in zip(jobs, outputs, strict=True):
            yield self._finished(job, output)

    def _finished(self, job: _Job, output: NDArray[Any]) -> Pixels:
        """Return the result of a tile in the units and dtype of the image."""
        crop = (slice(None), *job.tile.crop)
        values, missing = job.plane.restored(output[crop].astype(np.float64)), job.missing[crop]
        if not np.isfinite(values[~missing]).all():
            raise ResultError(
                f"{self._walk.denoiser.name} gives values that are NaN or infinite in plane "
                f"{job.plane.frame}: nothing was written; check its weights and sigma."
            )
        pixels, clipped = to_dtype(np.where(missing, 0.0, values), self._walk.dtype)
        if self._source.blank is not None:
            keep_apart(pixels, self._source.blank)
        untouched = missing | job.plane.is_free_of_noise(*job.tile.kept)
        pixels[untouched] = job.stored[crop][untouched]
        self._walk.clipped += clipped
        return pixels


def _batches(jobs: Iterable[_Job], size: int) -> Iterator[list[_Job]]:
    """Group consecutive jobs whose tiles have one shape, at most `size` of them."""
    group: list[_Job] = []
    for job in jobs:
        if group and (len(group) == size or job.values.shape != group[0].values.shape):
            yield group
            group = []
        group.append(job)
    if group:
        yield group
