"""One file: opened, denoised, and written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from normeq import __version__
from normeq._support.atomic import replace_folder, replacing, sync_tree
from normeq._support.locking import locked
from normeq.denoising.bands import Walk
from normeq.denoising.error_bars import ErrorBars
from normeq.denoising.file_options import FileOptions
from normeq.denoising.journal import Journal
from normeq.denoising.local_runner import watched
from normeq.denoising.mosaics import start_walk
from normeq.denoising.outcome import Outcome, header
from normeq.denoising.paths import std_path
from normeq.denoising.preparation import Choice
from normeq.denoising.progress import Shares
from normeq.denoising.std_file import StdFile
from normeq.errors import BusyError, FileError, writing
from normeq.images import ImageFile, is_store, open_image
from normeq.images.converting import Writer, writer_for
from normeq.images.gzipped import pack
from normeq.images.provenance import Provenance
from normeq.models.releases import installed_release


def denoise_file(
    path: Path,
    target: Path,
    choice: Choice,
    options: FileOptions,
    outcome: Outcome,
    shares: Shares,
) -> None:
    """Denoise one file, and note in its outcome what became of it.

    Parameters
    ----------
    path, target
        The image, and where its result goes.
    choice, options
        What denoises it, and how.
    outcome
        Filled in as the work goes on.
    shares
        Told each share of the image that is finished.
    """
    if _is_skipped(target, options):
        outcome.status = "skipped"
        return
    with open_image(path, options.axes, options.max_pixels, options.part) as source:
        outcome.header = header(source)
        outcome.planes = sum(part.planes for part in source.parts)
        writer = writer_for(source, target)
        if options.dry_run:
            outcome.status = "planned"
            return
        walks = [_walk(part, choice, options, outcome) for part in source.parts]
        options.runner.check(source, target, walks[0])
        std = _std_job(walks[0], source, target, options)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with locked(target):
                if _is_skipped(target, options):  # another process has written it since
                    outcome.status = "skipped"
                    return
                share = 1.0 if std is None else 1 / (1 + std.runs)
                _write(walks, source, target, writer, options, outcome, shares.part(share))
                if std is not None:
                    std.write(shares.part(1 - share))
                    outcome.std = str(std.target)
        except BusyError:
            if options.existing != "skip":
                raise
            outcome.status = "skipped"
            return
    for walk in walks:
        walk.log_clipped(path)
    outcome.clipped = sum(walk.clipped for walk in walks)
    outcome.status = "done"


def _std_job(walk: Walk, source: ImageFile, target: Path, options: FileOptions) -> StdFile | None:
    """Return what writes the error bars of a file, if they are wanted and can be written."""
    if options.std_probes is None:
        return None
    beside = std_path(target)
    if os.path.exists(beside) and options.existing != "overwrite":
        raise FileError(f"{beside}: already exists; pass --overwrite.")
    return StdFile(walk, source, beside, ErrorBars.of(walk, options.noise, options.std_probes))


def _walk(part: ImageFile, choice: Choice, options: FileOptions, outcome: Outcome) -> Walk:
    """Prepare one image of a file, and note what is assumed of its noise."""
    walk = start_walk(part, choice, options.noise, options.walk)
    outcome.model = walk.denoiser.name
    outcome.noise_found += walk.decisions()
    outcome.noise.append(walk.noise.as_dict())
    return walk


def _provenance(
    source: ImageFile, walk: Walk, outcome: Outcome, options: FileOptions
) -> Provenance:
    parameters = {
        "noise": options.noise.identity,
        "noise_found": outcome.noise,
        "axes": source.axes,
        "nan": options.walk.nan,
        "value_range": options.walk.value_range,
        "part": options.part,
    }
    return Provenance(
        f"normeq {__version__}",
        str(installed_release(walk.denoiser.name) or walk.denoiser.name),
        walk.denoiser.identity,
        source.path.name,
        options.runner.digest(source),
        parameters,
    )


def _is_skipped(target: Path, options: FileOptions) -> bool:
    """Tell whether a result that exists is left alone; raise if it should not be there."""
    if not os.path.exists(target) or options.existing == "overwrite":
        return False
    if options.existing == "refuse":
        raise FileError(
            f"{target} already exists: pass --overwrite or --skip-existing (in Python, "
            "existing='overwrite' or 'skip')."
        )
    return True


def _write(
    walks: list[Walk],
    source: ImageFile,
    target: Path,
    writer: Writer,
    options: FileOptions,
    outcome: Outcome,
    shares: Shares,
) -> None:
    """Write a result that says how it was made, and a record of that beside it if it is wanted."""
    provenance = _provenance(source, walks[0], outcome, options)
    for part in source.parts:
        part.provenance = provenance
    if is_store(target):
        _write_folder(walks[0], source, target, writer, options, outcome, shares)
    else:
        with replacing(target) as temporary:
            _write_file(walks, source, temporary, writer, shares)
            if target.suffix.lower() == ".gz":
                pack(temporary)
    if options.record:
        with replacing(target.with_name(f"{target.name}.json")) as temporary:
            temporary.write_text(f"{provenance.as_json()}\n", encoding="ascii")


def _write_file(
    walks: list[Walk], source: ImageFile, target: Path, writer: Writer, shares: Shares
) -> None:
    """Write all images of a file, in their own format or by another's writer."""
    if writer is not type(source).write:
        writer(source, target, watched(walks[0].bands(), source, shares))
        return
    for walk, part in zip(walks, source.parts, strict=True):
        part.write(target, watched(walk.bands(), source, shares))
    source.complete(target)


def _write_folder(
    walk: Walk,
    source: ImageFile,
    target: Path,
    writer: Writer,
    options: FileOptions,
    outcome: Outcome,
    shares: Shares,
) -> None:
    """Write a folder under another name, going on with what a killed run has left of it."""
    partial = target.with_name(f".{target.name}.partial")
    with writing(target):
        journal = Journal(partial, _key(walk, source, options))
        outcome.resumed = bool(journal.done)
        options.runner.fill(partial, source, walk, writer, journal, shares)
        # Until all of it is on the disk, a killed run needs the journal to continue.
        sync_tree(partial)
        journal.close()
        replace_folder(partial, target)


def _key(walk: Walk, source: ImageFile, options: FileOptions) -> str:
    """Return a digest of everything that a result depends on: input, model and options."""
    about = [
        source.fingerprint(),
        header(source),
        walk.denoiser.identity,
        options.walk.value_range,
        options.noise.identity,
        options.walk.bayer,
        options.walk.nan,
        options.runner.layout(source, walk),
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()
