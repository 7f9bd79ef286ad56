"""What a worker does: it measures, denoises and averages parts of an image, and writes them.

A worker gets the job, with the weights, once, as a plugin of dask. Tasks name it by its key.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

from distributed import Worker, WorkerPlugin, get_worker

from normeq._support.allocator import keep_freed
from normeq.cluster.layout import Rectangle
from normeq.denoising.image_job import ImageJob
from normeq.denoising.units import Moments
from normeq.images.provenance import file_digest
from normeq.images.source import Pixels
from normeq.images.zarr_store import ZarrSource


class JobPlugin(WorkerPlugin):
    """Keeps a job on every worker, also on those that join later.

    Parameters
    ----------
    job
        The image, which is opened again on each worker, and what denoises it.
    target
        The unfinished copy.
    """

    def __init__(self, job: ImageJob, target: Path) -> None:
        self.job = job
        self.target = target

    def setup(self, worker: Worker) -> None:
        # dask makes its workers give freed memory back at once, which slows networks down.
        keep_freed()


def _plugin(key: str) -> JobPlugin:
    plugin: JobPlugin = get_worker().plugins[key]  # type: ignore[assignment]
    return plugin


def measure(key: str, part: Rectangle) -> list[list[Moments]]:
    """Return the moments of each sample of each frame of a rectangle."""
    job = _plugin(key).job
    return _moments(job, part, _read(job, part, 0))


def denoise(key: str, part: Rectangle, moments: Sequence[Sequence[Moments]] | None) -> int:
    """Denoise a rectangle and write it; return how many pixels were clipped.

    Parameters
    ----------
    key
        Of the job.
    part
        The rectangle, which fills whole files of the copy.
    moments
        Those of each frame; None if the rectangle is the whole plane.
    """
    plugin = _plugin(key)
    job = copy.copy(plugin.job)  # each thread counts for itself
    job.clipped = 0
    source = job.source
    assert isinstance(source, ZarrSource)
    read = _read(job, part, job.margin)
    found = _moments(job, part, read) if moments is None else moments
    planes = {
        frame: job.planes(frame, of_frame)
        for frame, of_frame in zip(part.frames, found, strict=True)
    }
    results = job.denoised(planes, part.rows, part.columns, read)
    for frame, pixels in results.items():
        source.store(plugin.target, frame, part.rows, part.columns, pixels)
    return job.clipped


def _read(job: ImageJob, part: Rectangle, margin: int) -> Callable[[int, slice, slice], Pixels]:
    """Read a rectangle with a margin; return what gives parts of it."""
    source = job.source
    assert isinstance(source, ZarrSource)
    rows = _widened(part.rows, margin, source.height)
    columns = _widened(part.columns, margin, source.width)
    pixels = source.read_frames(part.frames, rows, columns)

    def read(frame: int, down: slice, right: slice) -> Pixels:
        within: Pixels = pixels[frame][
            down.start - rows.start : down.stop - rows.start,
            right.start - columns.start : right.stop - columns.start,
        ]
        return within

    return read


def _widened(span: slice, margin: int, length: int) -> slice:
    return slice(max(0, span.start - margin), min(length, span.stop + margin))


def _moments(
    job: ImageJob, part: Rectangle, read: Callable[[int, slice, slice], Pixels]
) -> list[list[Moments]]:
    return [job.moments(frame, read(frame, part.rows, part.columns)) for frame in part.frames]


def digests(files: Sequence[Path]) -> list[str]:
    """Return SHA-256 of each file."""
    return [file_digest(file) for file in files]
