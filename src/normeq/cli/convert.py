"""``normeq convert``: an equivariant twin of a network of yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def convert(
    network: Annotated[
        str,
        typer.Argument(
            help="package.module:factory, a function that returns the network. It is run."
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            help="scale-equiv, norm-equiv, norm-equiv-residual, norm-equiv-wrapped or "
            "norm-equiv-local."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .safetensors file to write.")],
    weights: Annotated[
        Path | None,
        typer.Option(help="Trained weights of the network: a .safetensors or .pth state dict."),
    ] = None,
    shape: Annotated[
        str | None, typer.Option(help="Shape of the input, such as 1,3,64,64.")
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(help="A further argument of the network, such as sigma=0.1."),
    ] = None,
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Keep batch norm, which learns from ratios, for a twin to be trained."
        ),
    ] = False,
) -> None:
    """Convert your own network to an equivariant twin, prove it, and save it.

    Load it in Python with normeq.conversion.load_twin(FILE, factory()).
    """
    from torch import nn

    from normeq.certification.examples import named_arguments
    from normeq.cli.check import read_number, read_shape
    from normeq.conversion import convert as make_twin
    from normeq.conversion import save_twin
    from normeq.conversion.loading import load_weights
    from normeq.denoising.names import resolve
    from normeq.errors import UsageError

    net = resolve(network)
    if not isinstance(net, nn.Module):
        raise UsageError(f"{network} is a function: only networks can be converted.")
    if weights is not None:
        load_weights(net, weights)
    form: Any = to
    net.train(train)
    given = dict(map(read_number, input or []))
    twin, report = make_twin(net, form, named_arguments(net, read_shape(shape), given))
    save_twin(twin, report, output, {"network": network})
    typer.echo(report.table())
    typer.echo(f"wrote {output}; normeq.conversion.load_twin loads it")
