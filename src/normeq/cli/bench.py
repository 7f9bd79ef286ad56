"""``normeq bench``: what equivariance costs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from normeq.bench import Timing


def bench(
    networks: Annotated[
        list[str] | None, typer.Argument(help="Networks to measure; default: all denoisers.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Folder for speed.csv, speed.png and denoise-time.csv. Networks already in "
            "speed.csv that are not measured now are kept.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use 1x1x64x64 instead of 16x1x128x128: under a minute.")
    ] = False,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Also measure torch.compile; needs a C++ compiler.")
    ] = False,
    rounds: Annotated[
        int, typer.Option(min=1, help="Runs of each case, interleaved; fast networks get more.")
    ] = 5,
    model: Annotated[
        str | None, typer.Option(help="Also time normeq denoise with this model on a file.")
    ] = None,
) -> None:
    """Measure the time of each variant relative to the scale-equivariant one.

    Inference and training steps, in the fastest memory layout; medians of interleaved runs.
    """
    from normeq._support.tables import make_folder
    from normeq.bench import NETWORKS, measure
    from normeq.bench.table import text, write_timings
    from normeq.errors import UsageError

    chosen = networks or NETWORKS
    unknown = [name for name in chosen if name not in NETWORKS]
    if unknown:
        raise UsageError(f"network {unknown[0]!r} is unknown: use one of {', '.join(NETWORKS)}.")
    if output is not None:
        make_folder(output)
    shape: dict[str, Any] = (
        {"batch": 1, "size": 64} if quick else {"batch": 16, "size": 128, "seconds": 300}
    )
    timings: list[Timing] = []
    for name in chosen:
        for job in ("inference", "training"):
            timings += measure(
                name,
                job,
                rounds=rounds,
                compiled=compile_,
                progress=lambda text: typer.echo(text, err=True),
                **shape,
            )
            if output is not None:  # again and again: what is measured is not lost
                write_timings(output, timings)
    typer.echo(text(timings))
    if model is not None:
        _time_denoising(model, output)


def _time_denoising(model: str, output: Path | None) -> None:
    """Print, and write if there is a folder, how long the parts of denoising a file take."""
    from normeq.bench import denoise_parts
    from normeq.bench.table import write_parts

    parts = denoise_parts(model)
    for part in parts:
        typer.echo(f"{part.part:<10} {part.seconds_per_megapixel:8.3f} s per megapixel")
    if output is not None:
        write_parts(output, parts)
