"""A run on a cluster: what is denoised, measured and averaged in which order, and recorded."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path

from distributed import Client

from normeq.cluster import tasks
from normeq.cluster.layout import Layout, Rectangle, cut
from normeq.cluster.steps import Step, cluster_sentences, run_steps
from normeq.denoising.bands import Walk
from normeq.denoising.image_job import ImageJob
from normeq.denoising.journal import Journal
from normeq.denoising.local_runner import Runner
from normeq.denoising.mosaics import MosaicWalk
from normeq.denoising.progress import Shares
from normeq.denoising.units import Moments, merged_moments
from normeq.errors import ClusterError, InputError, NormeqError, UsageError, reason
from normeq.images import is_store
from normeq.images.converting import Writer
from normeq.images.provenance import digest
from normeq.images.source import ImageFile
from normeq.images.zarr_pyramid import blocks_of, downsample
from normeq.images.zarr_store import ZarrSource

# Blocks of a pyramid that one task averages have about this many pixels together.
_AVERAGED_PIXELS = 2**22
_FILES_AT_ONCE = 64


class ClusterRunner(Runner):
    """Denoises Zarr images on workers, which read and write the stores themselves.

    Parameters
    ----------
    client
        Connected to the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def check(self, source: ImageFile, target: Path, walk: Walk) -> None:
        folders = {source.path: type(source) is ZarrSource, target: is_store(target)}
        for path, is_folder in folders.items():
            if not is_folder:
                raise InputError(
                    f"{path} is not a Zarr folder, and only those can be denoised on a cluster: "
                    "store the image as OME-Zarr, or leave out --cluster."
                )
        if isinstance(walk, MosaicWalk):
            raise UsageError("camera mosaics cannot be denoised on a cluster: leave out --cluster.")
        maps = [noise.levels.image for noise in walk.noise.planes.values() if noise.levels]
        if any(isinstance(each, ImageFile) and not isinstance(each, ZarrSource) for each in maps):
            raise UsageError("on a cluster, a map of sigma must be stored as a Zarr folder.")

    def digest(self, source: ImageFile) -> str:
        return digest(source.path, self._digests)

    def _digests(self, files: Sequence[Path]) -> list[str]:
        found: dict[int, list[str]] = {}

        def finish(start: int, result: list[str]) -> Sequence[Step]:
            found[start] = result
            return ()

        def step(start: int) -> Step:
            batch = [file.absolute() for file in files[start : start + _FILES_AT_ONCE]]
            return Step(tasks.digests, (batch,), partial(finish, start))

        with cluster_sentences():
            run_steps(self._client, map(step, range(0, len(files), _FILES_AT_ONCE)))
        return [of_file for start in sorted(found) for of_file in found[start]]

    def layout(self, source: ImageFile, walk: Walk) -> tuple[int, ...]:
        return astuple(_layout(source, walk))

    def fill(
        self,
        target: Path,
        source: ImageFile,
        walk: Walk,
        writer: Writer,
        journal: Journal,
        shares: Shares,
    ) -> None:
        assert isinstance(source, ZarrSource)
        source.begin(target)
        journal.start()
        if walk.denoiser.halo is None:
            walk.log_whole_planes()
        layout = _layout(source, walk)
        levels = [
            _Averaging(level, fine.absolute(), coarse.absolute())
            for level, (fine, coarse) in enumerate(source.pyramid(target))
        ]
        share = 1 / (layout.tasks + sum(level.tasks for level in levels))
        shares.add(share * len(journal.done))

        def finished(*place: int) -> None:
            if place:
                journal.record(*place)
            shares.add(share)

        with cluster_sentences(), self._job(walk, source, target) as key:
            denoising = _Denoising(key, walk, layout, finished)
            run_steps(self._client, denoising.steps(journal.done))
            for level in levels:  # each from the one before
                run_steps(self._client, level.steps(journal.done, finished))
        source.finish(target)

    @contextmanager
    def _job(self, walk: Walk, source: ZarrSource, target: Path) -> Iterator[str]:
        """Bring a job to all workers, also to those that join later, until it is done."""
        key = f"normeq-{uuid.uuid4().hex}"
        job = ImageJob(walk.denoiser, source, walk.noise, walk.options, walk.plan)
        try:
            self._client.register_plugin(tasks.JobPlugin(job, target.absolute()), name=key)
        except NormeqError:
            raise
        except Exception as error:  # whatever it is that a worker lacks
            raise ClusterError(
                f"the workers could not receive the job ({reason(error)}): they need the same "
                "version of normeq, the code of the model, and the folders of the image and "
                "its result."
            ) from error
        try:
            yield key
        finally:
            if self._client.status == "running":  # else it would wait for its scheduler
                with suppress(Exception):
                    self._client.unregister_worker_plugin(key)


def _layout(source: ImageFile, walk: Walk) -> Layout:
    assert isinstance(source, ZarrSource)
    return cut(
        (source.frames, source.height, source.width),
        source.stored_together,
        source.frames_together,
        whole_planes=walk.denoiser.halo is None,
    )


class _Denoising:
    """The steps that denoise an image.

    Parameters
    ----------
    key
        Of the job.
    walk
        Its count of clipped pixels is kept up to date.
    layout
        How the image is cut.
    finished
        Called with the place of each rectangle, and without one when something is measured.
    """

    def __init__(
        self, key: str, walk: Walk, layout: Layout, finished: Callable[..., object]
    ) -> None:
        self._key = key
        self._walk = walk
        self._layout = layout
        self._finished = finished

    def steps(self, done: Container[tuple[int, ...]]) -> Iterator[Step]:
        """Yield what can be done at once, without what is done already."""
        for frames in self._layout.groups():
            parts = self._layout.rectangles(frames)
            left = [part for part in parts if part.place not in done]
            if self._layout.undivided:
                yield from (self._step(part, None) for part in left)
            elif left:
                yield from self._measuring(parts, left)

    def _measuring(self, parts: list[Rectangle], left: list[Rectangle]) -> Iterator[Step]:
        """Measure the planes of some frames; when that is done, denoise what is left of them."""
        found: dict[int, list[list[Moments]]] = {}

        def finish(number: int, measured: list[list[Moments]]) -> list[Step]:
            found[number] = measured
            self._finished()
            if len(found) < len(parts):
                return []
            whole = [
                [merged_moments(sample) for sample in zip(*of_frame, strict=True)]
                for of_frame in zip(*(found[each] for each in range(len(parts))), strict=True)
            ]
            return [self._step(part, whole) for part in left]

        for number, part in enumerate(parts):
            yield Step(tasks.measure, (self._key, part), partial(finish, number))

    def _step(self, part: Rectangle, moments: list[list[Moments]] | None) -> Step:
        def finish(clipped: int) -> Sequence[Step]:
            self._walk.clipped += clipped
            self._finished(*part.place)
            return ()

        return Step(tasks.denoise, (self._key, part, moments), finish)


class _Averaging:
    """The steps that average one level of a pyramid into the next.

    Parameters
    ----------
    level
        Stands for it in the journal.
    fine, coarse
        The two levels.
    """

    def __init__(self, level: int, fine: Path, coarse: Path) -> None:
        self._level, self._fine, self._coarse = level, fine, coarse
        blocks = list(blocks_of(coarse))
        size = math.prod(side.stop - side.start for side in blocks[0])
        count = max(1, _AVERAGED_PIXELS // size)
        self._batches = [blocks[start : start + count] for start in range(0, len(blocks), count)]

    @property
    def tasks(self) -> int:
        """How many steps there are."""
        return len(self._batches)

    def steps(
        self, done: Container[tuple[int, ...]], finished: Callable[..., object]
    ) -> Iterator[Step]:
        """Yield the steps, without those that are done already."""
        for number, blocks in enumerate(self._batches):
            if (self._level, number) not in done:
                arguments = (self._fine, self._coarse, blocks)
                yield Step(downsample, arguments, partial(self._finish, number, finished))

    def _finish(self, number: int, finished: Callable[..., object], result: None) -> Sequence[Step]:
        finished(self._level, number)
        return ()
