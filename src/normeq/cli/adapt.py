"""``normeq adapt``: noisy images in, weights tuned on them out."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from normeq.cli import options
from normeq.cli.reporting import shown_messages
from normeq.errors import UsageError


def adapt(
    inputs: Annotated[
        list[str], typer.Argument(help="Noisy images, folders of them, or quoted patterns.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the weights go: NAME.safetensors.")
    ],
    model: options.Model = "default",
    sigma: options.Sigma = None,
    noise: options.Noise = options.AssumedKind.AUTO,
    each_plane: options.EachPlane = False,
    gain: options.Gain = None,
    read_noise: options.ReadNoise = None,
    offset: options.Offset = None,
    axes: options.Axes = None,
    bayer: options.Bayer = None,
    same_scene: options.SameScene = False,
    steps: options.Steps = None,
    minutes: options.Minutes = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing weights.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Tune a denoiser on noisy images alone; use the weights with --model.

    Tiles that are held out tell whether it has become better; if not, the original weights are
    written, and a sentence says so.
    """
    from normeq import models
    from normeq.adaptation.own_images import opened_images
    from normeq.adaptation.tuning_job import forget, tune
    from normeq.adaptation.tuning_options import STEPS, TuningOptions
    from normeq.denoising.preparation import Choice
    from normeq.denoising.progress import progress_report
    from normeq.denoising.stated_noise import noise_options
    from normeq.training.interruption import Stopped

    if output.suffix != ".safetensors":
        raise UsageError(f"{output} is for weights: give it the extension .safetensors.")
    if output.exists() and not (overwrite or resume):
        raise UsageError(f"{output} exists: choose another name, or replace it with --overwrite.")
    choice = Choice(model, device)
    state = output.with_name(f".{output.name}.run")
    how = TuningOptions(
        STEPS if steps is None else steps,
        minutes,
        seed,
        same_scene,
        None if bayer is None else bayer.value,
        state,
        resume,
    )
    stating = noise_options(
        sigma,
        noise.value,
        each_plane=each_plane,
        gain=gain,
        read_noise=read_noise,
        offset=offset,
    )
    with (
        stating as stated,
        shown_messages(logging.ERROR if quiet else logging.INFO),
        opened_images(list(inputs), axes) as sources,
        progress_report(how.steps, not quiet) as report,
    ):
        choice.check(stated)
        tuned = tune(sources, choice, stated, how, report)
    models.save(tuned.network, output, tuned.network.card)
    if not quiet:
        typer.echo(f"{output}: {tuned.message}")
    if tuned.stopped:
        raise Stopped(f"stopped; {output} has the best weights so far; continue with --resume.")
    forget(state)
