"""The main job on files: each image in, the same file with less noise out, or none at all."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from normeq._support.atomic import replace_folder, replacing, sync_tree
from normeq.denoising.bands import NanPolicy, Run
from normeq.denoising.denoiser import Engine
from normeq.denoising.journal import Journal
from normeq.errors import FileError, NormeqError, reason, writing
from normeq.images import MAX_PIXELS, Band, ImageFile, open_image

log = logging.getLogger(__name__)

Existing = Literal["refuse", "skip", "overwrite"]


@dataclass(frozen=True)
class Options:
    """How files are denoised.

    Attributes
    ----------
    sigma
        Noise level in the units of the images, for a model that takes one.
    axes
        One letter per axis, in place of what the files say.
    nan
        Whether pixels without a value are an error, or stay.
    existing
        What to do if the output exists.
    max_pixels
        Larger images are refused.
    """

    sigma: float | None = None
    axes: str | None = None
    nan: NanPolicy = "raise"
    existing: Existing = "refuse"
    max_pixels: int = MAX_PIXELS


@dataclass
class Outcome:
    """What became of one file; `header` holds its format, shape, axes and dtype."""

    input: str
    output: str
    status: Literal["done", "skipped", "failed"] = "failed"
    error: str | None = None
    header: dict[str, Any] = field(default_factory=dict)
    planes: int = 0
    clipped: int = 0
    resumed: bool = False
    preview: str | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the header's entries beside the others."""
        data = asdict(self)
        header: dict[str, Any] = data.pop("header")
        return data | header


def denoise_files(
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    engine: Engine,
    options: Options,
    progress: Callable[[int], object] = lambda pixels: None,
) -> Iterator[Outcome]:
    """Denoise images one by one; a bad one is an outcome, not the end.

    Parameters
    ----------
    inputs, outputs
        Images, and where each result goes.
    engine
        The denoiser.
    options
        See `Options`.
    progress
        Called with the number of pixels of each finished band.
    """
    engine.check_sigma(options.sigma)
    for path, target in zip(inputs, outputs, strict=True):
        outcome = Outcome(str(path), str(target))
        start = time.perf_counter()
        try:
            _denoise_file(path, target, engine, options, outcome, progress)
        except NormeqError as error:
            outcome.error = _about(path, str(error))
        except Exception as error:  # whatever it is, it is about this file only
            log.debug("unexpected", exc_info=error)
            outcome.error = f"{path}: {type(error).__name__}: {reason(error)}"
        outcome.seconds = round(time.perf_counter() - start, 3)
        yield outcome


def total_pixels(inputs: Sequence[Path], options: Options) -> int:
    """Sum the pixels of all images that can be opened, from their headers."""
    total = 0
    for path in inputs:
        try:
            with open_image(path, options.axes, options.max_pixels) as source:
                total += source.pixels
        except NormeqError:
            continue  # said when its turn comes
    return total


def _denoise_file(
    path: Path,
    target: Path,
    engine: Engine,
    options: Options,
    outcome: Outcome,
    progress: Callable[[int], object],
) -> None:
    if os.path.exists(target) and options.existing != "overwrite":
        if options.existing == "refuse":
            raise FileError(f"{target}: exists already; pass --overwrite or --skip-existing.")
        outcome.status = "skipped"
        return
    with open_image(path, options.axes, options.max_pixels) as source:
        outcome.header = header(source)
        outcome.planes = source.planes
        run = Run(engine, source, options.sigma, nan=options.nan)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        if source.resumable:
            _write_folder(run, source, target, options, outcome, progress)
        else:
            with replacing(target) as temporary:
                source.write(temporary, _watched(run.bands(), progress))
    run.log_clipped(path)
    outcome.clipped = run.clipped
    outcome.status = "done"


def _write_folder(
    run: Run,
    source: ImageFile,
    target: Path,
    options: Options,
    outcome: Outcome,
    progress: Callable[[int], object],
) -> None:
    """Write a folder under another name, going on with what a killed run has left of it."""
    partial = target.with_name(f".{target.name}.partial")
    with writing(target):
        journal = Journal(partial, _key(run, source, options))
        outcome.resumed = bool(journal.done)
        for _, start in journal.done:
            rows = min(run.plan.rows, source.height - start)
            progress(rows * source.width * source.samples)
        source.write(partial, journal.recorded(_watched(run.bands(journal.done), progress)))
        # Until all of it is on the disk, the journal is what a killed run goes on from.
        sync_tree(partial)
        journal.close()
        replace_folder(partial, target)


def _watched(bands: Iterator[Band], progress: Callable[[int], object]) -> Iterator[Band]:
    for band in bands:
        yield band
        progress(band.pixels.size)


def _key(run: Run, source: ImageFile, options: Options) -> str:
    """Return a digest of everything that a result depends on: input, model and options."""
    files = [(file, file.stat()) for file in sorted(source.path.rglob("*")) if file.is_file()]
    about = [
        str(source.path.resolve()),
        [(str(f.relative_to(source.path)), s.st_size, s.st_mtime_ns) for f, s in files],
        header(source),
        run.engine.identity,
        options.sigma,
        options.nan,
        run.plan.rows,
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def header(source: ImageFile) -> dict[str, Any]:
    """Return what the header of an image says, as plain data."""
    return {
        "format": source.format,
        "shape": list(source.shape),
        "axes": source.axes,
        "dtype": str(source.dtype),
    }


def _about(path: Path, sentence: str) -> str:
    """Let a sentence begin with the file it is about."""
    return sentence if str(path) in sentence else f"{path}: {sentence}"
