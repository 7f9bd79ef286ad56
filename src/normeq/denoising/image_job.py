"""One image on its way through a denoiser, rectangle by rectangle.

What is done to a rectangle needs nothing but its pixels and their surroundings, once the statistics
of its plane are known: bands of a file, blocks of a lazy array and chunks on a cluster are all
denoised here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from normeq.denoising.assumed_noise import AssumedNoise
from normeq.denoising.denoiser import Denoiser
from normeq.denoising.missing import FILL_DEPTH, keep_apart, missing_pixels
from normeq.denoising.plane import Plane, sample_groups, stored_moments
from normeq.denoising.tile_jobs import TileJob, batches
from normeq.denoising.tiles import Plan, Tile, plan_tiles, spans, tiles_of, widened
from normeq.denoising.units import (
    Floats,
    Moments,
    Statistics,
    choose_units,
    merged_moments,
    to_dtype,
)
from normeq.denoising.walk_options import WalkOptions
from normeq.errors import Cancelled, InputError, ResultError, UsageError
from normeq.images.source import ImageSource, Pixels

#: Reads some rows and columns of a frame.
RegionReader = Callable[[int, slice, slice], Pixels]

#: Gives floating-point values for each of some tiles of one shape, in place of the denoised image.
Measure = Callable[["ImageJob", Sequence[TileJob]], Iterable[Floats]]


class ImageJob:
    """An image, what denoises it, what is assumed of its noise, and how it is cut.

    Parameters
    ----------
    denoiser, source, noise
        What denoises, the image, and what is assumed of its noise.
    options
        See `WalkOptions`.
    plan
        How the image is cut into tiles; chosen from the memory there is if None.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        source: ImageSource,
        noise: AssumedNoise,
        options: WalkOptions | None = None,
        plan: Plan | None = None,
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
        self._measure: Measure | None = None
        self.groups = sample_groups(denoiser, source)
        self.plan = plan_tiles(denoiser, source, options.tile) if plan is None else plan

    def measuring(self, measure: Measure, dtype: np.dtype[Any]) -> Self:
        """Return the same job, whose result is something else about each pixel.

        Parameters
        ----------
        measure
            What it is; the result is NaN where a pixel has no value, and 0 for an opacity.
        dtype
            Of the result: a floating-point one.
        """
        job = copy.copy(self)
        job._measure, job.dtype = measure, dtype
        return job

    def decisions(self) -> list[str]:
        """Say what was decided for the image: a line about colour, and one for the noise found."""
        together, name = self.denoiser.channels, self.denoiser.name
        if together == 1:
            return self.noise.lines()
        return [f"colour: {together} channels are denoised together by {name}", *self.noise.lines()]

    def stop_if_cancelled(self) -> None:
        """Raise `Cancelled` if another thread has asked for it."""
        if self.options.cancel is not None and self.options.cancel.is_set():
            raise Cancelled("the run was cancelled.")

    # Statistics ------------------------------------------------------------------------------

    def moments(self, frame: int, pixels: Pixels) -> list[Moments]:
        """Return the moments of each sample of some pixels ``(rows, columns, samples)``."""
        return [
            stored_moments(pixels[..., sample], self.source.blank, self.noise.of(frame, samples[0]))
            for samples in self.groups
            for sample in samples
        ]

    def read_planes(self, frame: int, read: RegionReader | None = None) -> list[Plane]:
        """Read a frame once, some rows at a time, and choose the units of its planes.

        Parameters
        ----------
        frame
            Its number.
        read
            Reads parts of the image, in place of its own way.
        """
        read = self.source.read_region if read is None else read
        everywhere = slice(0, self.source.width)
        parts = [
            self.moments(frame, read(frame, span.kept, everywhere))
            for span in spans(self.source.height, self.plan.rows)
        ]
        return self.planes(frame, map(merged_moments, zip(*parts, strict=True)))

    def planes(self, frame: int, moments: Iterable[Moments]) -> list[Plane]:
        """Choose the units of a frame's planes, given the moments of each sample of it."""
        found = iter([each.statistics for each in moments])
        return [self._plane(frame, group, [next(found) for _ in group]) for group in self.groups]

    def _plane(self, frame: int, samples: list[int], found: Sequence[Statistics]) -> Plane:
        for channel in found:
            self._check(frame, channel)
        noise = self.noise.of(frame, samples[0])
        units = choose_units(
            self.denoiser,
            found,
            noise.level,
            self.source,
            self.options.value_range,
            stabilised=noise.transform is not None,
        )
        means = (np.array([channel.mean for channel in found]) - units.center) / units.scale
        return Plane(frame, samples, units, means, noise)

    def _check(self, frame: int, plane: Statistics) -> None:
        missing = plane.missing
        if missing and self.options.nan == "raise":
            raise InputError(
                f"{missing} of the {missing + plane.count} pixels of plane {frame} "
                "are NaN, infinite or marked as missing: fill them, or keep them as they are "
                "with nan='keep' (--nan keep)."
            )
        if missing and self.source.dtype.kind == "f" and self.dtype.kind != "f":
            raise UsageError(
                f"{missing} pixels of plane {frame} are NaN or infinite, which {self.dtype} "
                "cannot hold: choose a floating-point output_dtype."
            )
        if not np.isfinite(plane.spread):
            raise InputError(f"plane {frame} contains values too large for double precision.")

    # Denoising -------------------------------------------------------------------------------

    @property
    def margin(self) -> int:
        """How far around a rectangle its result depends on pixels, at most."""
        return (self.denoiser.halo or 0) + self.denoiser.stride - 1 + self._fill_depth

    @property
    def _fill_depth(self) -> int:
        return FILL_DEPTH if self.options.nan == "keep" else 0

    def denoised(
        self,
        planes: Mapping[int, list[Plane]],
        rows: slice,
        columns: slice,
        read: RegionReader | None = None,
    ) -> dict[int, Pixels]:
        """Denoise one rectangle of several frames; return ``(rows, columns, samples)`` of each.

        Parameters
        ----------
        planes
            Those of each frame, as `planes` makes them.
        rows, columns
            The rectangle.
        read
            Reads parts of the image, in place of its own way.
        """
        read = self.source.read_region if read is None else read
        shape = (rows.stop - rows.start, columns.stop - columns.start, self.source.samples)
        results = {frame: np.empty(shape, self.dtype) for frame in planes}
        if self.source.alpha:
            for frame, result in results.items():
                opacity = read(frame, rows, columns)[..., -1]
                result[..., -1] = opacity if self._measure is None else 0
        for alike in self.tile_jobs(planes, rows, columns, read):
            for job, pixels in zip(alike, self._results(alike), strict=True):
                down, right = job.tile.kept
                inside = (
                    slice(down.start - rows.start, down.stop - rows.start),
                    slice(right.start - columns.start, right.stop - columns.start),
                )
                target = results[job.plane.frame]
                for sample, channel in zip(job.plane.samples, pixels, strict=True):
                    target[(*inside, sample)] = channel
        return results

    def tile_jobs(
        self,
        planes: Mapping[int, list[Plane]],
        rows: slice,
        columns: slice,
        read: RegionReader,
    ) -> Iterator[list[TileJob]]:
        """Cut a rectangle of several frames into tiles; yield those that run together."""
        jobs = (job for frame in planes for job in self._jobs(planes[frame], rows, columns, read))
        return batches(jobs, self.plan.batch)

    def _jobs(
        self, planes: Sequence[Plane], rows: slice, columns: slice, read: RegionReader
    ) -> Iterator[TileJob]:
        """Cut a rectangle of a frame into tiles, in the denoiser's units, their holes filled."""
        depth = self._fill_depth
        for tile in tiles_of(rows, columns, self.plan, self.denoiser, self.source):
            down = widened(tile.rows, depth, self.source.height)
            across = widened(tile.columns, depth, self.source.width)
            kept = (slice(None), *Tile(down, across).within(tile.rows, tile.columns))
            pixels = read(planes[0].frame, down.read, across.read)
            for plane in planes:
                stored = np.moveaxis(pixels[..., plane.samples], -1, 0)
                missing = missing_pixels(stored, self.source.blank)
                values = plane.seen(stored, missing)
                sigma = plane.sigma(tile.rows.read, tile.columns.read)
                yield TileJob(plane, tile, values[kept], stored[kept], missing[kept], sigma)

    def _results(self, jobs: Sequence[TileJob]) -> Iterator[Pixels]:
        """Denoise tiles of one shape together; yield each in the units and dtype of the image."""
        if self._measure is not None:
            for job, found in zip(jobs, self._measure(self, jobs), strict=True):
                yield np.where(job.missing[job.crop], np.nan, found).astype(self.dtype)
            return
        restored = self.restored(jobs, np.stack([job.values for job in jobs]))
        for job, values in zip(jobs, restored, strict=True):
            yield self._finished(job, values)

    def restored(self, jobs: Sequence[TileJob], values: Floats) -> Iterator[Floats]:
        """Denoise tiles of one shape together; yield what is kept of each, in stored units.

        Parameters
        ----------
        jobs
            The tiles.
        values
            What the denoiser sees of them, ``(N, C, H, W)``, in its own units.
        """
        self.stop_if_cancelled()
        sigma = lengths = None
        if jobs[0].sigma is not None:
            sigma = np.stack([job.sigma for job in jobs if job.sigma is not None])
            if jobs[0].plane.noise.lengths is not None:
                lengths = np.array([job.plane.noise.lengths for job in jobs], np.float64)
        outputs = self.denoiser.run(values, sigma, lengths)
        for job, output in zip(jobs, outputs, strict=True):
            kept = job.plane.restored(output[job.crop].astype(np.float64))
            if not np.isfinite(kept[~job.missing[job.crop]]).all():
                raise ResultError(
                    f"{self.denoiser.name} returned values that are NaN or infinite in plane "
                    f"{job.plane.frame}: nothing was written; check its weights and sigma."
                )
            yield kept

    def _finished(self, job: TileJob, values: Floats) -> Pixels:
        """Return the result of a tile in the dtype of the image."""
        crop, missing = job.crop, job.missing[job.crop]
        pixels, clipped = to_dtype(np.where(missing, 0.0, values), self.dtype)
        if self.source.blank is not None:
            keep_apart(pixels, self.source.blank)
        untouched = missing | job.plane.is_free_of_noise(*job.tile.kept)
        pixels[untouched] = job.stored[crop][untouched]
        self.clipped += clipped
        return pixels
