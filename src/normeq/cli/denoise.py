"""``normeq denoise``: images in, the same files with less noise out."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from normeq.cli import options
from normeq.cli.pipes import named_as_streams, standard_streams
from normeq.cli.reporting import line, shown_messages, summary
from normeq.cli.result_pictures import with_preview, with_report
from normeq.errors import UsageError

if TYPE_CHECKING:
    from normeq.denoising.local_runner import Runner
    from normeq.denoising.noise_options import NoiseOptions
    from normeq.denoising.outcome import Outcome
    from normeq.denoising.preparation import Choice
    from normeq.denoising.walk_options import WalkOptions


def denoise(
    inputs: Annotated[
        list[str],
        typer.Argument(help="Images, folders of images, quoted patterns, or - for a pipe."),
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
    ensemble: options.Ensemble = options.Symmetries.ONE,
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt",
            help="First tune the model on all these images, as normeq adapt does; Ctrl-C ends "
            "the tuning early.",
        ),
    ] = False,
    axes: options.Axes = None,
    hdu: Annotated[
        str | None, typer.Option(help="FITS HDUs to denoise, such as SCI or 1,4; default: all.")
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
        bool,
        typer.Option("--record", help="Also write how the result was made, as JSON beside it."),
    ] = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Also say how good the result is: its error, whether what was removed is noise, "
            "and a picture, NAME.report.png.",
        ),
    ] = False,
    std: Annotated[
        bool,
        typer.Option(
            "--std",
            help="Also write error bars, NAME.std.EXT: the standard deviation that noise leaves "
            "in each pixel. Bias, often as large, is not included.",
        ),
    ] = False,
    probes: Annotated[
        int | None,
        typer.Option(
            help="Probes for --std (16) and --report (4): error bars are known to 1/√(2·probes), "
            "and each probe takes the time of denoising."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be read and written; write nothing.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Denoise a Zarr on a dask cluster: the address of its scheduler, local, or "
            "local:N for N processes."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print details of what is done.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Denoise images in their own units, and keep their dtype, axes, pixel size and header.

    The noise is estimated from each image, and one line says what was found. Exit codes: 0 if
    every image was denoised, 1 if one failed, 2 if the command cannot run.
    """
    piped = "-" in inputs
    beside = preview or record or report or std
    several = len(inputs) > 1 or output or beside or as_json or dry_run
    _refuse_contradictions(
        existing=overwrite and skip_existing,
        messages=quiet and verbose,
        pipe=piped and bool(several),
        cluster=std and cluster is not None,
        probes=probes is not None and not (report or std),
    )
    from normeq.denoising import files
    from normeq.denoising.error_bars import PROBES
    from normeq.denoising.file_options import FileOptions
    from normeq.denoising.preparation import Choice
    from normeq.denoising.progress import progress_bar
    from normeq.denoising.stated_noise import noise_options
    from normeq.denoising.walk_options import WalkOptions
    from normeq.images import MAX_PIXELS

    choice = Choice(model, device, compile_, value_range, ensemble.size)
    walk = WalkOptions(nan.value, None, tile, value_range, None if bayer is None else bayer.value)
    stating = noise_options(
        sigma,
        noise.value,
        strength=strength,
        each_plane=each_plane,
        gain=gain,
        read_noise=read_noise,
        offset=offset,
    )
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    lines = None if quiet or as_json else sys.stderr if piped else sys.stdout
    with ExitStack() as stack:
        stated = stack.enter_context(stating)
        stack.enter_context(shown_messages(level))
        choice.check(stated)
        paths, targets = stack.enter_context(_places(inputs, output))
        if adapt and not dry_run:
            choice = replace(choice, model=_adapted(paths, axes, choice, stated, walk, lines))
        how = FileOptions(
            stated,
            axes,
            "overwrite" if overwrite else "skip" if skip_existing else "refuse",
            MAX_PIXELS if max_pixels is None else max_pixels,
            walk,
            hdu,
            record,
            dry_run,
            (PROBES if probes is None else probes) if std else None,
            stack.enter_context(_runner(None if dry_run else cluster, quiet)),
        )
        bar = stack.enter_context(progress_bar(len(paths), hidden=quiet or None))
        running = files.outcomes(paths, targets, choice, how, bar.update)
        if preview:
            running = (with_preview(outcome, axes) for outcome in running)
        if report:
            running = (with_report(outcome, choice, how, probes) for outcome in running)
        if piped:
            running = map(named_as_streams, running)
        outcomes = list(_reported(paths, running, bar, lines))
    if as_json:
        typer.echo(json.dumps(summary(model, outcomes), indent=2))
    raise typer.Exit(any(outcome.status == "failed" for outcome in outcomes))


def _refuse_contradictions(
    *, existing: bool, messages: bool, pipe: bool, cluster: bool, probes: bool
) -> None:
    """Refuse options that contradict each other, in what each of these is about."""
    if existing:
        raise UsageError("--overwrite and --skip-existing contradict each other: pass only one.")
    if messages:
        raise UsageError("--quiet and --verbose contradict each other: pass only one.")
    if pipe:
        raise UsageError(
            "- reads an image from standard input and writes the result to standard output: leave "
            "out other inputs, --output, --preview, --record, --report, --std, --json and "
            "--dry-run."
        )
    if probes:
        raise UsageError("--probes belongs to --report and --std: pass one of them.")
    if cluster:
        raise UsageError(
            "--std cannot be computed on a cluster: leave out one of them, or call "
            "normeq.denoise(..., return_std=True) with a dask array."
        )


def _adapted(
    paths: list[Path],
    axes: str | None,
    choice: Choice,
    noise: NoiseOptions,
    walk: WalkOptions,
    lines: TextIO | None,
) -> str | Callable[..., Any]:
    """Tune the model on all images, and say what came of it; without a gain it stays as it is."""
    from normeq.adaptation.own_images import opened_images
    from normeq.adaptation.tuning_job import tune
    from normeq.adaptation.tuning_options import STEPS, TuningOptions
    from normeq.denoising.progress import progress_bar

    with (
        opened_images(paths, axes) as sources,
        progress_bar(STEPS, hidden=None if lines else True) as bar,
    ):
        bar.set_description("adapting")
        tuned = tune(sources, choice, noise, TuningOptions(STEPS, bayer=walk.bayer), bar.update)
    if lines is not None:
        typer.echo(tuned.message, file=lines)
    return tuned.network if tuned.improved else choice.model


@contextmanager
def _places(inputs: list[str], output: Path | None) -> Iterator[tuple[list[Path], list[Path]]]:
    """Give the images, and where each result goes."""
    from normeq.denoising.paths import expand, output_paths

    if "-" in inputs:
        with standard_streams() as (source, target):
            yield [source], [target]
        return
    paths = expand(inputs)
    yield paths, output_paths(paths, output)


@contextmanager
def _runner(cluster: str | None, quiet: bool) -> Iterator[Runner]:
    """Give what denoises: this process, or a cluster, whose dashboard is then named."""
    if cluster is None:
        from normeq.denoising.local_runner import Runner

        yield Runner()
        return
    from normeq.cluster.connection import connected

    with connected(cluster) as client:
        from normeq.cluster.runner import ClusterRunner

        if not quiet:
            typer.echo(f"cluster dashboard: {client.dashboard_link}", err=True)
        yield ClusterRunner(client)


def _reported(
    paths: list[Path], running: Iterator[Outcome], bar: Any, lines: TextIO | None
) -> Iterator[Outcome]:
    """Say above a progress bar what becomes of each file, errors on standard error."""
    for number, path in enumerate(paths, 1):
        bar.set_description(f"{path.name} ({number}/{len(paths)})")
        outcome = next(running)
        if outcome.error:
            bar.write(f"normeq: {outcome.error}", file=sys.stderr)
        elif lines is not None:
            bar.write(line(outcome), file=lines)
        yield outcome
