"""``normeq denoise``: images in, the same files with less noise out."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normeq.cli import options
from normeq.errors import NormeqError, UsageError

if TYPE_CHECKING:
    from normeq.denoising.one_file import Outcome


def denoise(
    inputs: Annotated[
        list[str], typer.Argument(help="Images, folders of images, or quoted patterns.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File or folder; default: NAME.denoised.EXT."),
    ] = None,
    sigma: options.Sigma = None,
    noise: options.Noise = options.AssumedKind.AUTO,
    strength: options.Strength = 1.0,
    each_plane: options.EachPlane = False,
    gain: options.Gain = None,
    read_noise: options.ReadNoise = None,
    offset: options.Offset = None,
    model: options.Model = "default",
    axes: options.Axes = None,
    hdu: Annotated[
        str | None, typer.Option(help="FITS units to denoise, such as SCI or 1,4; default: all.")
    ] = None,
    bayer: options.Bayer = None,
    tile: Annotated[
        int | None, typer.Option(help="Side of the tiles in pixels; default: what fits in memory.")
    ] = None,
    device: options.Device = "auto",
    nan: Annotated[
        options.Nan, typer.Option(help="NaN and infinite pixels: refuse or keep.")
    ] = options.Nan.RAISE,
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
    record: Annotated[
        bool, typer.Option("--record", help="Also write how it was made: NAME.json beside.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Denoise images in their own units, and keep their dtype, axes, pixel size and header.

    The noise is estimated from each image, and what was found is said in one line. Exit codes: 0
    every image was denoised, 1 some image failed, 2 the command cannot work.
    """
    if overwrite and skip_existing:
        raise UsageError("--overwrite and --skip-existing exclude each other: give one.")
    from normeq.denoising import files
    from normeq.denoising.bands import WalkOptions
    from normeq.denoising.one_file import FileOptions
    from normeq.denoising.paths import expand, output_paths
    from normeq.denoising.preparation import Choice
    from normeq.denoising.stated_noise import noise_options
    from normeq.images import MAX_PIXELS

    choice = Choice(model, device, compile_, value_range)
    stating = noise_options(
        sigma,
        noise.value,
        strength=strength,
        each_plane=each_plane,
        gain=gain,
        read_noise=read_noise,
        offset=offset,
    )
    with stating as stated:
        choice.check(stated)
        how = FileOptions(
            stated,
            axes,
            "overwrite" if overwrite else "skip" if skip_existing else "refuse",
            MAX_PIXELS if max_pixels is None else max_pixels,
            WalkOptions(nan.value, None, tile, value_range, None if bayer is None else bayer.value),
            hdu,
            record,
        )
        paths = expand(inputs)
        jobs = partial(files.outcomes, paths, output_paths(paths, output), choice, how)
        outcomes = _run(paths, jobs, axes, preview=preview, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(_summary(model, outcomes), indent=2))
    raise typer.Exit(any(outcome.status == "failed" for outcome in outcomes))


def _run(
    paths: list[Path],
    jobs: Callable[[Callable[[float], object]], Iterator[Outcome]],
    axes: str | None,
    *,
    preview: bool,
    quiet: bool,
) -> list[Outcome]:
    """Denoise files below a progress bar, and say what became of each."""
    from normeq.denoising.progress import progress_bar

    outcomes = []
    with _logging(), progress_bar(len(paths)) as bar:
        running = jobs(bar.update)
        for number, path in enumerate(paths, 1):
            bar.set_description(f"{path.name} ({number}/{len(paths)})")
            outcome = next(running)
            if preview and outcome.status == "done":
                _preview(outcome, axes)
            outcomes.append(outcome)
            if outcome.error:
                bar.write(f"normeq: {outcome.error}", file=sys.stderr)
            elif not quiet:
                bar.write(_line(outcome), file=sys.stdout)
    return outcomes


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
    done = (
        f"{outcome.input} -> {outcome.output} "
        f"({about['axes']} {about['dtype']}, {planes}, {outcome.seconds:.1f} s{clipped})"
    )
    return "\n  ".join([done, *outcome.noise_found])


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
