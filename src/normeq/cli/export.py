"""``normeq export``: a network in another format, for use elsewhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Target(StrEnum):
    """What a network is written as."""

    ONNX = "onnx"
    TORCH_EXPORT = "torch-export"
    BIOIMAGEIO = "bioimageio"


def export(
    model: Annotated[
        str,
        typer.Argument(
            help="A name that 'normeq models' lists, a weights file, or package.module:factory, "
            "which is run."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file to write: .onnx, .pt2 or .zip.")
    ],
    to: Annotated[
        Target,
        typer.Option(
            help="onnx; torch-export, for torch.export.load; bioimageio, a package for its "
            "programs."
        ),
    ] = Target.ONNX,
    with_sigma: Annotated[
        bool,
        typer.Option("--with-sigma", help="Let the file take the noise level, a map, as an input."),
    ] = False,
    twin: Annotated[
        Path | None,
        typer.Option(
            help="A file of normeq convert; MODEL is the factory of the network it came from."
        ),
    ] = None,
) -> None:
    """Write a network as ONNX, torch.export or a bioimage.io package, checked against PyTorch.

    The file takes images of every size. Use an ONNX file with normeq denoise --model FILE.onnx.
    """
    import logging

    from torch import nn

    from normeq.cli.reporting import shown_messages
    from normeq.conversion import load_twin
    from normeq.denoising.names import resolve
    from normeq.errors import UsageError
    from normeq.exporting import export as write

    network: nn.Module | str = model
    if twin is not None:
        factory = resolve(model)
        if not isinstance(factory, nn.Module):
            raise UsageError(f"{model} is a function, and only networks have twins.")
        network = load_twin(twin, factory)
    with shown_messages(logging.INFO):
        write(network, output, to.value, with_sigma=with_sigma)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.1f} MB")
