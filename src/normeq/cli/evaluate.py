"""``normeq evaluate``: PSNR and SSIM of a denoiser on a folder of clean images."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normeq.cli import options

if TYPE_CHECKING:
    from normeq.denoising.noise_options import NoiseName
    from normeq.evaluation import Score


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            help="Shipped model, weights file, classical method or package.module:factory."
        ),
    ],
    data: Annotated[Path, typer.Option(help="Folder of clean images.")],
    sigma: Annotated[str, typer.Option(help="Noise levels out of 255.")] = "15,25,50",
    noise: Annotated[
        str, typer.Option(help="Distribution of the noise, such as gaussian or laplace.")
    ] = "gaussian",
    assume: Annotated[
        options.AssumedKind | None,
        typer.Option(
            help="What the denoiser assumes, as in normeq denoise --noise; default: white noise, "
            "whose level is given to models that take one."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise.")] = 0,
    csv: Annotated[Path | None, typer.Option(help="Also write the scores to this file.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the scores as JSON instead of a table.")
    ] = False,
) -> None:
    """Measure PSNR and SSIM of a denoiser. Every model gets the same noise for the same seed."""
    import json

    from tqdm import tqdm

    from normeq._support.tables import make_folder, write_csv
    from normeq.errors import calling
    from normeq.evaluation import SMALLEST, image_denoiser, means
    from normeq.evaluation import evaluate as measure
    from normeq.images.folder import read_folder

    levels = _levels(sigma)
    assumed: NoiseName | None = None if assume is None else assume.value
    denoiser, channels = image_denoiser(model, assumed)
    if csv is not None:
        make_folder(csv.parent)
    folder = read_folder(data, channels, SMALLEST)
    if folder.skipped:
        typer.echo(f"{data}: {folder}", err=True)
    running = measure(denoiser, folder, levels, kind=noise, seed=seed)
    total = len(levels) * len(folder.images)
    with calling(model, f"the images of {data}"):
        scores = list(tqdm(running, total=total, unit="image", leave=False))
    about = {"model": model, "noise": noise, "assume": assumed, "seed": seed}
    if as_json:
        result = about | {
            "skipped": folder.skipped,
            "images": [_finite(score) for score in scores],
            "means": [_finite(score) for score in means(scores)],
        }
        typer.echo(json.dumps(result))
    else:
        typer.echo(_table([*scores, *means(scores)]))
    if csv is not None:
        write_csv(csv, [about | asdict(score) for score in scores])


def _levels(text: str) -> list[float]:
    from normeq.errors import UsageError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--sigma '{text}' is not a list of numbers such as 15,25,50.") from error


def _finite(score: Score) -> dict[str, Any]:
    """Return a score for JSON, which knows neither infinity nor NaN: they become null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(score).items()
    }


def _table(scores: list[Score]) -> str:
    width = max(len(score.image) for score in scores)
    lines = [f"{'image':<{width}}  sigma   PSNR    SSIM"]
    lines += [f"{s.image:<{width}}  {s.sigma:5g}  {s.psnr:6.3f}  {s.ssim:.4f}" for s in scores]
    return "\n".join(lines)
