"""``normeq import-weights``: weights that normeq loads, from published checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def import_weights(
    file: Annotated[Path, typer.Argument(help="A .pth file with a state dict.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The .safetensors file to write.")],
    layout: Annotated[str, typer.Option(help="Where the file comes from: paper or kair.")],
    variant: Annotated[
        str | None,
        typer.Option(help="ordinary, scale-equiv or norm-equiv, if the tensors do not tell."),
    ] = None,
) -> None:
    """Convert a published checkpoint to weights that normeq loads.

    Only tensors are read; a file that would run code is refused.
    """
    from normeq.models import import_weights as build
    from normeq.models import save
    from normeq.models.published import read_state_dict

    known: Any = variant
    net = build(read_state_dict(file), layout, known)
    save(net, output, {"source": file.name, "layout": layout})
    sizes = ", ".join(f"{key}={value}" for key, value in net.config.items() if key != "variant")
    typer.echo(f"{output}: {net.variant} {net.architecture} ({sizes})")
