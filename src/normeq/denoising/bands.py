"""One image through one denoiser: bands of rows in, the same bands denoised out.

A plane is read once for its statistics, and once more, tile by tile, for the denoiser.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.denoising.denoiser import Engine, Units
from normeq.denoising.tiles import Tile, reach, spans, widened
from normeq.denoising.units import FILL_DEPTH, Floats, Mask, fill_missing, statistics, to_dtype
from normeq.errors import InputError, UsageError
from normeq.images.source import Band, ImageSource, Pixels

log = logging.getLogger(__name__)

NanPolicy = Literal["raise", "keep"]

# Statistics are taken of this many pixels at a time, which need several copies of themselves.
_PIXELS_IN_DOUBLE = 2**18


class Run:
    """An image being denoised; `bands` gives it in order, `clipped` counts as it goes.

    Parameters
    ----------
    engine
        The denoiser.
    source
        The image.
    sigma
        Noise level in physical units: one for all, or one for each frame.
    nan
        Whether a pixel without a value is an error, or stays as it is.
    dtype
        Of the result; that of the image if None.
    """

    def __init__(
        self,
        engine: Engine,
        source: ImageSource,
        sigma: ArrayLike | None = None,
        *,
        nan: NanPolicy = "raise",
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        if nan not in ("raise", "keep"):
            raise UsageError(f"nan is {nan!r}, but must be 'raise' or 'keep'.")
        if source.pixels == 0:
            raise InputError(f"the image is empty: its shape is {source.shape}.")
        self.engine = engine
        self.source = source
        self.nan = nan
        self.dtype = source.dtype if dtype is None else dtype
        self.clipped = 0
        self.sigmas = self._sigma_of_frames(sigma)
        self.plan = engine.plan(source)

    def _sigma_of_frames(self, sigma: ArrayLike | None) -> NDArray[np.float64] | None:
        """Return the noise level of each frame, in stored units."""
        self.engine.check_sigma(sigma)
        if sigma is None:
            return None
        levels = np.asarray(sigma, dtype=np.float64)
        try:
            return np.broadcast_to(levels, self.source.leading).ravel() / self.source.gain
        except ValueError as error:
            raise UsageError(
                f"sigma has shape {levels.shape}: give one number, or an array of shape "
                f"{self.source.leading}, one for each plane."
            ) from error

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
            batch = _Batch(self, sorted({frame for left in wanted.values() for frame in left}))
            for start, left in wanted.items():
                yield from batch.denoised(left, start, min(start + step, height))

    def log_clipped(self, what: object) -> None:
        """Say how many pixels were cut off at the limits of the dtype."""
        if self.clipped:
            log.info("%s: %d pixels clipped to the range of %s", what, self.clipped, self.dtype)


def progress_bar(total: int, shown: bool | None) -> Any:
    """Return a progress bar over pixels; None shows it on a terminal only."""
    from tqdm import tqdm

    hidden = None if shown is None else not shown
    return tqdm(total=total, disable=hidden, unit="pixel", unit_scale=True)


@dataclass(frozen=True)
class _Plane:
    """One sample of one frame, the units in which the denoiser sees it, and its mean in them."""

    frame: int
    sample: int
    units: Units
    mean: float
    sigma: float | None


@dataclass(frozen=True)
class _Job:
    """A tile of a plane: what the denoiser gets, and what it must not touch."""

    plane: _Plane
    tile: Tile
    values: Floats
    stored: Pixels
    missing: Mask


class _Batch:
    """Some frames of an image, their statistics known, to be denoised band by band."""

    def __init__(self, run: Run, frames: Iterable[int]) -> None:
        self._run = run
        self._source = run.source
        self._whole: dict[int, Pixels] = {}
        self._planes = {
            frame: [
                self._plane(frame, sample)
                for sample in range(run.source.samples - run.source.alpha)
            ]
            for frame in frames
        }

    def _read(self, frame: int, rows: slice) -> Pixels:
        """Read rows of a frame; a frame that was once read whole is not read again."""
        if frame in self._whole:
            return self._whole[frame][rows]
        pixels = self._source.read(frame, rows.start, rows.stop)
        if len(pixels) == self._source.height:
            self._whole[frame] = pixels
        return pixels

    def _missing(self, pixels: Pixels) -> Mask:
        missing = ~np.isfinite(pixels)
        if self._source.blank is not None:
            missing |= pixels == self._source.blank
        return missing

    def _plane(self, frame: int, sample: int) -> _Plane:
        """Pass once over a plane and choose its units."""
        run = self._run

        def parts() -> Iterator[tuple[Floats, Mask]]:
            step = max(1, _PIXELS_IN_DOUBLE // self._source.width)
            for span in spans(self._source.height, run.plan.rows):
                band = self._read(frame, span.kept)[..., sample]
                for start in range(0, len(band), step):
                    stored = band[start : start + step]
                    yield stored.astype(np.float64), self._missing(stored)

        found = statistics(parts())
        if found.missing and run.nan == "raise":
            raise InputError(
                f"{found.missing} of the {found.missing + found.count} pixels of plane {frame} "
                "are NaN, infinite or marked as missing: fill them, or keep them as they are "
                "with nan='keep' (--nan keep)."
            )
        if found.missing and self._source.dtype.kind == "f" and run.dtype.kind != "f":
            raise UsageError(
                f"{found.missing} pixels of plane {frame} are NaN or infinite, which {run.dtype} "
                "cannot hold: choose a floating-point output_dtype."
            )
        if not np.isfinite(found.spread):
            raise InputError(f"plane {frame} holds values too large for double precision.")
        sigma = None if run.sigmas is None else float(run.sigmas[frame])
        units = run.engine.units(found, sigma, self._source)
        mean = (found.mean - units.center) / units.scale
        return _Plane(frame, sample, units, mean, sigma)

    def denoised(self, frames: Sequence[int], start: int, stop: int) -> list[Band]:
        """Denoise rows ``[start, stop)`` of some of the frames."""
        shape = (stop - start, self._source.width, self._source.samples)
        bands = {frame: Band(frame, start, np.empty(shape, self._run.dtype)) for frame in frames}
        if self._source.alpha:
            for frame, band in bands.items():
                band.pixels[..., -1] = self._read(frame, slice(start, stop))[..., -1]
        jobs = (job for frame in frames for job in self._jobs(frame, start, stop))
        at_once = self._run.plan.batch
        for _, alike in groupby(enumerate(jobs), lambda j: (j[0] // at_once, j[1].values.shape)):
            group = [job for _, job in alike]
            for job, pixels in zip(group, self._results(group), strict=True):
                rows, columns = job.tile.kept
                inside = slice(rows.start - start, rows.stop - start)
                bands[job.plane.frame].pixels[inside, columns, job.plane.sample] = pixels
        return list(bands.values())

    def _jobs(self, frame: int, start: int, stop: int) -> Iterator[_Job]:
        """Cut rows of a frame into tiles, in the denoiser's units and with their holes filled."""
        engine, (tall, wide) = self._run.engine, self._run.plan.tile
        height, width = self._source.height, self._source.width
        halo = engine.halo or 0
        depth = FILL_DEPTH if self._run.nan == "keep" else 0
        for top in range(start, stop, tall):
            rows = reach(top, min(top + tall, stop), height, halo, engine.stride)
            around = widened(rows, depth, height)
            pixels = self._read(frame, around.read)
            for columns in spans(width, wide, halo, engine.stride):
                across = widened(columns, depth, width)
                inside = Tile(around, across).within(rows, columns)
                for plane in self._planes[frame]:
                    stored = pixels[:, across.read, plane.sample]
                    missing = self._missing(stored)
                    values = plane.units.enter(stored.astype(np.float64))
                    if missing.any():
                        values = fill_missing(values, missing, plane.mean)
                    yield _Job(
                        plane,
                        Tile(rows, columns),
                        values[inside],
                        stored[inside],
                        missing[inside],
                    )

    def _results(self, jobs: list[_Job]) -> Iterator[Pixels]:
        """Denoise tiles of one shape together; yield each in the units and dtype of the image."""
        levels = None
        if self._run.sigmas is not None:
            levels = [(job.plane.sigma or 0.0) / job.plane.units.scale for job in jobs]
        outputs = self._run.engine.run([job.values for job in jobs], levels)
        for job, output in zip(jobs, outputs, strict=True):
            crop = job.tile.crop
            values = job.plane.units.leave(output[crop].astype(np.float64))
            missing = job.missing[crop]
            pixels, clipped = to_dtype(np.where(missing, 0.0, values), self._run.dtype)
            if self._source.blank is not None:
                _keep_apart(pixels, self._source.blank)
            pixels[missing] = job.stored[crop][missing]
            self._run.clipped += clipped
            yield pixels


def _keep_apart(pixels: Pixels, blank: float) -> None:
    """Move values that happen to be the mark of a missing one to the value beside it."""
    if pixels.dtype.kind == "f":
        beside = np.nextafter(pixels.dtype.type(blank), pixels.dtype.type(np.inf))
    else:
        beside = blank + 1 if blank < np.iinfo(pixels.dtype).max else blank - 1
    pixels[pixels == blank] = beside
