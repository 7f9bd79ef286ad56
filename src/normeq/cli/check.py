"""``normeq check``: the measured equivariance of a model."""

from __future__ import annotations

from typing import Annotated

import typer


def check(
    model: Annotated[
        str, typer.Argument(help="A shipped name, a weights file, or package.module:factory.")
    ],
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise level beside images in [0, 1]; for models that take one."),
    ] = None,
) -> None:
    """Measure whether f(λy + μ) = λf(y) + μ holds for a model.

    Errors are the worst over gains from 1e-3 to 1e3 and offsets of both signs up to 1000 spreads
    (100 in single precision), in spreads of the image.
    """
    from normeq.check import check as measure
    from normeq.check import table, verdict
    from normeq.denoisers import resolve

    f = resolve(model)
    if sigma is None and not getattr(f, "blind", True):
        sigma = 0.1
    size = getattr(f, "config", {}).get("image_size", 48)
    rows = measure(f, size=size, sigma=sigma)
    typer.echo(table(rows))
    typer.echo(f"{model} is {verdict(rows)}.")
