"""``normeq demo``: a photograph with added noise, denoised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "demo"
    ),
    model: Annotated[str, typer.Option(help="See normeq denoise.")] = "default",
    sigma: Annotated[
        float, typer.Option(help="Standard deviation of the noise, where white is 255.")
    ] = 25.0,
) -> None:
    """Add noise to a photograph, denoise it, and print PSNR before and after."""
    import numpy as np

    from normeq import denoise, images, noise
    from normeq._support.photograph import sample_photograph
    from normeq.denoising.introspection import takes_sigma
    from normeq.denoising.names import resolve
    from normeq.denoising.preview import write_preview
    from normeq.errors import writing
    from normeq.metrics import psnr

    clean = (255 * sample_photograph()).astype(np.float32)
    noisy = clean + noise.draw("gaussian", clean.shape, sigma, np.random.default_rng(0))
    told = sigma if takes_sigma(resolve(model)) == "always" else None
    denoised = denoise(noisy, told, model=model)
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    images.write(output / "camera.tif", noisy)
    images.write(output / "camera.denoised.tif", denoised)
    preview = output / "camera.preview.png"
    write_preview(output / "camera.tif", output / "camera.denoised.tif", preview)
    typer.echo(f"PSNR before {psnr(noisy / 255, clean / 255):.2f} dB")
    typer.echo(f"PSNR after  {psnr(denoised / 255, clean / 255):.2f} dB")
    typer.echo(f"wrote {preview}")
