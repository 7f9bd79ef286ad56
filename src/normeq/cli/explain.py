"""``normeq explain``: what a denoised pixel is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normeq.cli import options


def explain(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="Image file of any size.")],
    at: Annotated[list[str], typer.Option(metavar="ROW,COLUMN", help="A pixel; may be repeated.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="PNG file for the picture.")],
    model: options.Model = "default",
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise level in the image's units, to learn how much of it is left."),
    ] = None,
    axes: options.Axes = None,
    frame: Annotated[int, typer.Option(help="Which plane of a stack, from 0.")] = 0,
    channel: Annotated[int, typer.Option(help="Which channel of a colour image, from 0.")] = 0,
    value_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Values that are 0 and 1 to a model that is not equivariant."),
    ] = None,
) -> None:
    """Show the adaptive filter of a pixel: how much every other pixel counts in it.

    The network alone is explained, on the image as it is: no noise model, no transform.
    """
    from torch import nn

    from normeq import explanation
    from normeq._support.tables import save_figure
    from normeq.denoising.introspection import channels_of
    from normeq.denoising.names import denoiser_for, resolve
    from normeq.errors import UsageError
    from normeq.images import open_image

    places = [_place(text) for text in at]
    net = resolve(model)
    if not isinstance(net, nn.Module):
        raise UsageError(f"{model} is not a network, and filters are derivatives of networks.")
    denoiser_for(net, value_range=value_range)  # refuses what depends on units without them
    low, high = value_range or (0.0, 1.0)
    with open_image(image, axes) as source:
        if not 0 <= frame < source.frames or not 0 <= channel < source.samples - source.alpha:
            raise UsageError(
                f"{image} has {source.frames} planes of {source.samples - source.alpha} channels, "
                f"counted from 0: there is no channel {channel} of plane {frame}."
            )
        together = channels_of(net) > 1
        samples = range(source.samples - source.alpha) if together else [channel]
        plane = explanation.FilePlane(source, frame, samples, value_range)
        level = None if sigma is None else sigma / (high - low)
        filters = [
            explanation.explain(net, plane, place, sigma=level, channel=channel * together)
            for place in places
        ]
    filters = [each.in_units(high - low, low) for each in filters]
    for each in filters:
        typer.echo(explanation.describe(each).replace("\n", "; ").replace("  ", " "))
    title = f"{image.name}: adaptive filters of {model}"
    save_figure(output, lambda: explanation.filter_figure(filters, title))


def _place(text: str) -> tuple[int, int]:
    """Read ``12,34``."""
    from normeq.errors import UsageError

    try:
        row, column = (int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--at {text} is not ROW,COLUMN, such as 12,34.") from error
    return row, column
