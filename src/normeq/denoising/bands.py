"""The walk over an image: bands of rows in, the same bands denoised out.

A plane is read once for its statistics, and once more, tile by tile, for the denoiser.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Sequence

from normeq.denoising.image_job import ImageJob
from normeq.images.source import Band, Pixels

log = logging.getLogger(__name__)


class Walk(ImageJob):
    """An image being denoised; `bands` gives it in order, `clipped` counts as it goes."""

    def bands(self, done: Container[tuple[int, ...]] = ()) -> Iterator[Band]:
        """Yield the denoised bands in order, without those whose (frame, start) are in `done`."""
        height, step = self.source.height, self.plan.rows
        for first in range(0, self.source.frames, self.plan.frames):
            frames = range(first, min(first + self.plan.frames, self.source.frames))
            wanted = {
                start: left
                for start in range(0, height, step)
                if (left := [frame for frame in frames if (frame, start) not in done])
            }
            some = Frames(self, sorted({frame for left in wanted.values() for frame in left}))
            for start, left in wanted.items():
                yield from some.denoised(left, start, min(start + step, height))

    def log_whole_planes(self) -> None:
        """Say that the denoiser has to see whole planes, which bounds memory from below."""
        log.warning(
            "%s sees whole planes: a task takes at least %d x %d pixels",
            self.denoiser.name,
            self.source.height,
            self.source.width,
        )

    def log_clipped(self, what: object) -> None:
        """Say how many pixels were cut off at the limits of the dtype."""
        if self.clipped:
            log.info("%s: %d pixels clipped to the range of %s", what, self.clipped, self.dtype)


class Frames:
    """Some frames of an image, their statistics known, to be denoised band by band."""

    def __init__(self, walk: Walk, frames: Iterable[int]) -> None:
        self._walk = walk
        self._whole: dict[int, Pixels] = {}
        self._last: tuple[int, slice, Pixels] | None = None
        self.planes = {frame: walk.read_planes(frame, self.read) for frame in frames}

    def read(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Read a part of a frame: whole rows, for many formats have no other way.

        What was read last is not read again, nor is a frame that was once read whole.
        """
        self._walk.stop_if_cancelled()
        if frame in self._whole:
            return self._whole[frame][rows, columns]
        if self._last is None or self._last[:2] != (frame, rows):
            pixels = self._walk.source.read(frame, rows.start, rows.stop)
            if len(pixels) == self._walk.source.height:
                self._whole[frame] = pixels
            self._last = (frame, rows, pixels)
        return self._last[2][:, columns]

    def denoised(self, frames: Sequence[int], start: int, stop: int) -> list[Band]:
        """Denoise rows ``[start, stop)`` of some of the frames."""
        planes = {frame: self.planes[frame] for frame in frames}
        everywhere = slice(0, self._walk.source.width)
        results = self._walk.denoised(planes, slice(start, stop), everywhere, self.read)
        return [Band(frame, start, pixels) for frame, pixels in results.items()]
