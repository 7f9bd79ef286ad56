"""``normeq explore``: an image and its denoised twin, in the browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from normeq.cli import options, stopping


def explore(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="Image file of any size.")],
    model: options.Model = "default",
    axes: options.Axes = None,
    hdu: Annotated[
        str | None, typer.Option(help="FITS unit to look at, such as SCI; default: the first.")
    ] = None,
    bayer: options.Bayer = None,
    device: options.Device = "auto",
    value_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Values that are 0 and 1 to a model that is not equivariant."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0: a port that is free.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Look at an image and its denoised twin on a local page, before a whole stack is denoised.

    Only what is in view is computed. The page is served to this machine alone, to whoever has the
    printed address; nothing leaves the machine. Ctrl-C ends it.
    """
    from normeq.denoising.names import denoiser_for
    from normeq.errors import UsageError
    from normeq.images import open_image

    try:
        from normeq.explorer.serving import PageServer
    except ModuleNotFoundError as error:
        raise UsageError(
            f"normeq explore needs {error.name}: pip install 'normeq[web]'."
        ) from error
    denoiser_for(model, device=device, value_range=value_range)  # refuses what cannot be used
    with open_image(image, axes, part=hdu) as source:
        server = PageServer(
            source,
            model=model,
            value_range=value_range,
            device=device,
            bayer=None if bayer is None else bayer.value,
            axes=axes,
            part=hdu,
            port=port,
        )
        typer.echo(f"{source.path.name} is shown at {server.address}")
        if browser:
            webbrowser.open(server.address)
        stop = KeyboardInterrupt()
        try:
            with server:
                server.run()
        except KeyboardInterrupt as signal:
            stop = signal
        # Answers may still be computed, by threads that Python would wait for, or fail with.
        stopping.end_at_once("explore", stop)
