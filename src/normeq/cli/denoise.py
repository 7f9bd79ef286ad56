"""``normeq denoise``: images in, the same files with less noise out."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normeq.errors import NormeqError, UsageError

if TYPE_CHECKING:
    from normeq.denoising.files import Outcome


class Nan(StrEnum):
    """What to do with pixels that are NaN or infinite."""

    RAISE = "raise"
    KEEP = "keep"


def denoise(
    inputs: Annotated[
        list[str], typer.Argument(help="Images, folders of images, or quoted patterns.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File or folder; default: NAME.denoised.EXT."),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise level in the image's units; default: a blind model."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Shipped model, weights file, classical method or module:factory."),
    ] = "default",
    axes: Annotated[
        str | None, typer.Option(help="One letter per axis, such as TZYX; Y rows, X columns.")
    ] = None,
    hdu: Annotated[
        str | None, typer.Option(help="FITS units to denoise, such as SCI or 1,4; default: all.")
    ] = None,
    tile: Annotated[
        int | None, typer.Option(help="Side of the tiles in pixels; default: what fits in memory.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, ...; auto prefers a GPU.")] = "auto",
    nan: Annotated[Nan, typer.Option(help="NaN and infinite pixels: refuse or keep.")] = Nan.RAISE,
    value_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Values that are 0 and 1 to a model that is not equivariant."),
    ] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Use torch.compile: worth it for many large images.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing outputs.")
    ] = False,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave existing outputs as they are.")
    ] = False,
    max_pixels: Annotated[
        int | None, typer.Option(help="Refuse images with more pixels than this.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Also write a picture: before, after, difference.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Denoise images in their own units, and keep their dtype, axes, pixel size and header.

    Reads TIFF, PNG, JPEG, NPY, Zarr and FITS. Exit codes: 0 every image was denoised, 1 some
    image failed, 2 the command cannot work.
    """
    if overwrite and skip_existing:
        raise UsageError("--overwrite and --skip-existing exclude each other: give one.")
    from normeq.denoising import files
    from normeq.denoising.bands import WalkOptions
    from normeq.denoising.names import default_model, denoiser_for
    from normeq.denoising.paths import expand, output_paths
    from normeq.denoising.progress import progress_bar
    from normeq.images import MAX_PIXELS

    denoiser = denoiser_for(
        default_model(model, sigma), device=device, compile=compile_, value_range=value_range
    )
    options = files.FileOptions(
        sigma,
        axes,
        "overwrite" if overwrite else "skip" if skip_existing else "refuse",
        MAX_PIXELS if max_pixels is None else max_pixels,
        WalkOptions(nan.value, None, tile, value_range),
        hdu,
    )
    paths = expand(inputs)
    targets = output_paths(paths, output)
    outcomes = []
    with _logging(), progress_bar(len(paths)) as bar:
        jobs = files.outcomes(paths, targets, denoiser, options, bar.update)
        for number, path in enumerate(paths, 1):
            bar.set_description(f"{path.name} ({number}/{len(paths)})")
            outcome = next(jobs)
            if preview and outcome.status == "done":
                _preview(outcome, axes)
            outcomes.append(outcome)
            if outcome.error:
                bar.write(f"normeq: {outcome.error}", file=sys.stderr)
            elif not as_json:
                bar.write(_line(outcome), file=sys.stdout)
    if as_json:
        typer.echo(json.dumps(_summary(denoiser.name, outcomes), indent=2))
    raise typer.Exit(any(outcome.status == "failed" for outcome in outcomes))


def _preview(outcome: Outcome, axes: str | None) -> None:
    from normeq.denoising.paths import preview_path
    from normeq.denoising.preview import write_preview

    target = Path(outcome.output)
    outcome.preview = str(preview_path(target))
    try:
        write_preview(Path(outcome.input), target, Path(outcome.preview), axes)
    except NormeqError as error:
        outcome.status, outcome.error = "failed", f"{outcome.input}: no preview: {error}"


def _line(outcome: Outcome) -> str:
    if outcome.status == "skipped":
        return f"{outcome.input}: skipped, {outcome.output} exists"
    about = outcome.header
    planes = f"{outcome.planes} plane{'' if outcome.planes == 1 else 's'}"
    clipped = f", {outcome.clipped} pixels clipped" if outcome.clipped else ""
    return (
        f"{outcome.input} -> {outcome.output} "
        f"({about['axes']} {about['dtype']}, {planes}, {outcome.seconds:.1f} s{clipped})"
    )


def _summary(model: str, outcomes: list[Outcome]) -> dict[str, object]:
    counts = {
        status: sum(outcome.status == status for outcome in outcomes)
        for status in ("done", "skipped", "failed")
    }
    return {"model": model, **counts, "files": [outcome.as_dict() for outcome in outcomes]}


@contextmanager
def _logging() -> Iterator[None]:
    """Show our own messages on standard error, above the progress bar, and no library's."""
    from tqdm.contrib.logging import logging_redirect_tqdm

    ours, theirs = logging.getLogger("normeq"), logging.getLogger("tifffile")
    shown, hidden = logging.StreamHandler(), logging.NullHandler()
    shown.setFormatter(logging.Formatter("normeq: %(message)s"))
    ours.addHandler(shown)
    theirs.addHandler(hidden)
    level = ours.level
    ours.setLevel(logging.WARNING)
    try:
        with logging_redirect_tqdm([ours]):
            yield
    finally:
        ours.setLevel(level)
        ours.removeHandler(shown)
        theirs.removeHandler(hidden)
