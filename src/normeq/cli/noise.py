"""``normeq noise``: what noise an image has."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from normeq.noise import NoiseModel


def noise(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="Image file of any size.")],
    axes: Annotated[
        str | None, typer.Option(help="One letter per axis, in place of what the file says.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="PNG file for variance against level with the fit, and the autocorrelation; "
            "the number of the channel is added to its name if there are several."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the model as JSON.")] = False,
) -> None:
    """Estimate the noise of an image: its level, its growth with the signal, its correlation.

    One model for all planes of a channel, from the image alone.
    """
    from normeq._support.tables import save_figure
    from normeq.denoising.image_parts import estimate_part, part_reader, parts_of
    from normeq.images import open_image
    from normeq.noise import estimate_noise_of, measure_blocks
    from normeq.noise.noise_figure import noise_figure

    found = {}
    with open_image(image, axes) as source:
        parts = parts_of(source, each_plane=False)
        for number, (name, part) in enumerate(parts.items()):
            read, shape = part_reader(source, part)
            model = found[name] = estimate_noise_of(read, shape)
            if not as_json:
                typer.echo(f"{name}: {model.describe()}" if name else model.describe())
                for line in _details(model, estimate_part(source, part, None)):
                    typer.echo(f"  {line}")
            if plot is not None:
                path = plot.with_stem(f"{plot.stem}-{number}") if len(parts) > 1 else plot
                blocks = measure_blocks(read, shape, model.correlation)
                title = f"{image.name} {name}".strip()
                save_figure(path, partial(noise_figure, model, blocks, title))
    if as_json:
        models = [{"channel": name, **model.to_dict()} for name, model in found.items()]
        typer.echo(json.dumps({"image": str(image), "noise": models}, indent=2))


def _details(model: NoiseModel, assumed: NoiseModel | None) -> list[str]:
    """Say how certain it is, and what denoising makes of it."""
    lines = []
    if not model.is_uniform:
        lines.append(
            f"variance = {model.gain:.4g} · level {'+' if model.base >= 0 else '-'} "
            f"{abs(model.base):.4g}; gain known to {model.gain_error / model.gain:.1%}"
        )
    sigma, error = model.mean_sigma, model.sigma_error(model.mean)
    lines.append(f"sigma at the mean level, {model.mean:.4g}: {sigma:.3g} ± {error:.2g}")
    if assumed is not None and assumed.describe() != model.describe():
        lines.append(f"denoising assumes {assumed.describe()}: the rest may be texture")
    return lines
