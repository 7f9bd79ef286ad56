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
    shape: Annotated[
        str | None,
        typer.Option(help="With --prove: the shape to prove it for, as 1,3,64,64."),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(help="With --prove: a further argument of the network, as sigma=0.1."),
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(help="With --prove: draw the graph, coloured by kind, to this file."),
    ] = None,
) -> None:
    """Measure whether f(λy + μ) = λf(y) + μ holds for a model.

    Errors are the worst over gains from 1e-3 to 1e3 and offsets of both signs up to 1000 spreads
    (100 in single precision), in spreads of the image.
    """
    from normeq.denoising.introspection import takes_sigma
    from normeq.denoising.names import resolve
    from normeq.equivariance.error_table import check as measure
    from normeq.equivariance.error_table import table, verdict
    from normeq.errors import calling

    f = resolve(model)
    if prove or draw:
        _prove(model, f, draw, shape, input or [])
        return
    if sigma is None and takes_sigma(f) == "always":
        sigma = 0.1
    size = getattr(f, "config", {}).get("image_size", 48)
    given = f"an image of {size}x{size} pixels{'' if sigma is None else ' and sigma'}"
    with calling(model, given):
        rows = measure(f, size=size, sigma=sigma)
    typer.echo(table(rows))
    typer.echo(f"{model} is {verdict(rows)}.")


def _prove(
    model: str, f: Callable[..., Any], draw: Path | None, shape: str | None, inputs: list[str]
) -> None:
    """Print a network's certificate; exit with 1 unless normalization-equivariance is proven."""
    from torch import nn

    from normeq.certification import Status, certify
    from normeq.certification.examples import named_arguments
    from normeq.errors import UsageError

    if not isinstance(f, nn.Module):
        raise UsageError(
            f"{model} is a function, and only networks can be proven: leave out --prove to "
            "measure it."
        )
    certificate = certify(f, named_arguments(f, read_shape(shape), dict(map(read_number, inputs))))
    if draw is not None:
        _draw(certificate, draw)
    typer.echo(certificate.table())
    if certificate.norm is not Status.PROVEN:
        raise typer.Exit(1)


def read_shape(text: str | None) -> list[int] | None:
    """Read ``1,3,64,64``."""
    from normeq.errors import UsageError

    if text is None:
        return None
    lengths = [int(part) if part.strip().isdigit() else 0 for part in text.split(",")]
    if len(lengths) < 2 or min(lengths) < 1:
        raise UsageError(f"--shape {text} is not a shape: use whole numbers, such as 1,3,64,64.")
    return lengths


def read_number(text: str) -> tuple[str, float]:
    """Read ``sigma=0.1``."""
    from normeq.errors import UsageError

    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise UsageError(f"--input {text} is not NAME=NUMBER, such as sigma=0.1.") from error


def _draw(certificate: Certificate, path: Path) -> None:
    from normeq.errors import UsageError, reason

    try:
        certificate.draw(path)
    except ImportError as error:
        raise UsageError("pictures need matplotlib: pip install 'normeq[plot]'.") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be drawn ({reason(error)}).") from error
