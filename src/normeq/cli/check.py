"""``normeq check``: the measured equivariance of a model, or its proof."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from normeq.certification import Certificate


def check(
    model: Annotated[
        str, typer.Argument(help="Shipped model, weights file or package.module:factory.")
    ],
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise level for images in [0, 1], if the model takes one."),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Prove it for all images, or name the layers that break it and why."
        ),
    ] = False,
    draw: Annotated[
        Path | None,
        typer.Option(help="With --prove: draw the graph, coloured by kind, to this file."),
    ] = None,
) -> None:
    """Measure whether f(λy + μ) = λf(y) + μ holds for a model.

    Errors are the worst over gains from 1e-3 to 1e3 and offsets of both signs up to 1000 spreads
    (100 in single precision), in spreads of the image.
    """
    from normeq.denoising.denoiser import takes_sigma
    from normeq.denoising.names import resolve
    from normeq.equivariance.verdicts import check as measure
    from normeq.equivariance.verdicts import table, verdict
    from normeq.errors import calling

    f = resolve(model)
    if prove or draw:
        _prove(model, f, draw)
        return
    if sigma is None and takes_sigma(f) == "always":
        sigma = 0.1
    size = getattr(f, "config", {}).get("image_size", 48)
    given = f"an image of {size}x{size} pixels{'' if sigma is None else ' and sigma'}"
    with calling(model, given):
        rows = measure(f, size=size, sigma=sigma)
    typer.echo(table(rows))
    typer.echo(f"{model} is {verdict(rows)}.")


def _prove(model: str, f: Callable[..., Any], draw: Path | None) -> None:
    """Print a network's certificate; exit with 1 unless normalization-equivariance is proven."""
    from torch import nn

    from normeq.certification import Status, certify
    from normeq.errors import UsageError

    if not isinstance(f, nn.Module):
        raise UsageError(
            f"{model} is a function: only networks can be proven; leave --prove out to measure it."
        )
    certificate = certify(f)
    if draw is not None:
        _draw(certificate, draw)
    typer.echo(certificate.table())
    if certificate.norm is not Status.PROVEN:
        raise typer.Exit(1)


def _draw(certificate: Certificate, path: Path) -> None:
    from normeq.errors import UsageError, reason

    try:
        certificate.draw(path)
    except ImportError as error:
        raise UsageError("pictures need matplotlib: pip install 'normeq[plot]'.") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be drawn ({reason(error)}).") from error
