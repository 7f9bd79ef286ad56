"""The job: noisy images in, a network tuned on them out, or the original if nothing is gained."""

from __future__ import annotations

import copy
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from normeq.adaptation.held_out import HeldOut
from normeq.adaptation.judge import Judge
from normeq.adaptation.noisy_planes import NoisyPlane, noisy_planes, without_strength
from normeq.adaptation.teacher import Teacher
from normeq.adaptation.tile_stream import TileStream
from normeq.adaptation.tuner import Tuner
from normeq.adaptation.tuning_options import TuningOptions
from normeq.denoising.assumed_noise import AssumedNoise
from normeq.denoising.introspection import find_device
from normeq.denoising.mosaics import seen_planes
from normeq.denoising.names import resolve
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import ANY, Choice
from normeq.errors import InputError, UsageError
from normeq.images.source import ImageSource
from normeq.models import DenoisingNetwork
from normeq.nn import fuse
from normeq.noise import NoiseModel
from normeq.training import checkpoint
from normeq.training.interruption import stop_requests

log = logging.getLogger(__name__)

_CHECKS = 4
# A card names this many images and kinds of noise.
_NAMED = 20


@dataclass(frozen=True)
class Tuned:
    """What became of a tuning.

    Attributes
    ----------
    network
        The tuned network, or the one it started from; its card says which, and all the rest.
    improved
        Whether the weights are new.
    message
        The result in a sentence.
    stopped
        Whether the caller asked for an early end, so that the run can be continued.
    """

    network: DenoisingNetwork
    improved: bool
    message: str
    stopped: bool


def tune(
    sources: Mapping[str, ImageSource],
    choice: Choice,
    noise: NoiseOptions,
    options: TuningOptions,
    report: Callable[[float], object] = lambda share: None,
) -> Tuned:
    """Tune a network on images.

    Parameters
    ----------
    sources
        The images, by their names.
    choice, noise
        The model to start from, and what is said of the noise; the strength does not count.
    options
        See `TuningOptions`.
    report
        Called with the share of the work of each step.
    """
    images = {name: seen_planes(source, options.bayer) for name, source in sources.items()}
    name, prepared = _prepared(images, replace(choice, ensemble=1), without_strength(noise))
    planes, found = _usable(images, prepared, noise, options.same_scene)
    net = _network(name, choice)
    start = time.monotonic()
    held_out = HeldOut(planes, options.seed, options.same_scene)
    estimated = noise.sigma is None or isinstance(noise.sigma, str)
    stated = isinstance(noise.noise, NoiseModel) or not estimated
    before = held_out.terms(net)
    is_known = stated or options.same_scene
    level = 1.0 if is_known else held_out.implied_level(before)
    grows = any(plane.noise.transform is not None for plane in planes)
    judge = Judge(held_out, before, level, is_rough=grows and not is_known)
    doubt = None if is_known else judge.doubt()
    teacher = None if options.same_scene else Teacher(fuse(net), planes, options.seed, level)
    stream = TileStream(planes, held_out, options.seed, level, teacher)
    tuner = Tuner(net, stream, judge, options.steps, _saved(options))
    stopped = False if doubt else _run(tuner, judge, options, report, start)
    about = {
        "images": [Path(image).name for image in found][:_NAMED],
        "image_count": len(found),
        "planes": len(planes),
        "noise": list(dict.fromkeys(found.values()))[:_NAMED],
        "steps": tuner.step,
        "seed": options.seed,
        "same_scene": options.same_scene,
    }
    return _result(net, name, tuner, judge, doubt, about, stopped)


def _prepared(
    images: Mapping[str, ImageSource], choice: Choice, noise: NoiseOptions
) -> tuple[str, dict[str, AssumedNoise]]:
    """Choose one network for all images, and find out about the noise of each."""
    found = {name: choice.prepare(source, noise) for name, source in images.items()}
    names = {denoiser.name for denoiser, _ in found.values()}
    in_color = [denoiser.name for denoiser, _ in found.values() if denoiser.channels > 1]
    if in_color:
        raise UsageError(
            f"photographs in colour are denoised by {in_color[0]}, which cannot be adapted: leave "
            f"them as they are, or name a model for gray images (such as {ANY}), which is adapted "
            "to each colour and denoises them one by one."
        )
    if len(names) > 1:  # "default" stands for several: one of them takes every noise
        return _prepared(images, replace(choice, model=ANY), noise)
    return names.pop(), {name: assumed for name, (_, assumed) in found.items()}


def _usable(
    images: Mapping[str, ImageSource],
    prepared: Mapping[str, AssumedNoise],
    noise: NoiseOptions,
    same_scene: bool,
) -> tuple[list[NoisyPlane], dict[str, str]]:
    """List the planes that can be learned from, and describe the noise of each image."""
    planes: list[NoisyPlane] = []
    found: dict[str, str] = {}
    for name, source in images.items():
        these = noisy_planes(source, prepared[name], noise)
        if same_scene:
            _check_repetitions(name, source)
        else:
            correlated = [plane for plane in these if not plane.correlation.is_white]
            if correlated:
                log.warning(
                    "%s is left out: its noise is %s, which cannot be told from texture without a "
                    "second frame of the scene.",
                    name,
                    correlated[0].correlation.describe(),
                )
                continue
        planes += these
        found[name] = prepared[name].stated or _described(these)
    if not planes:
        raise InputError(
            "no image has white noise, so there is nothing to adapt to: denoise without adapting, "
            "or pass same_scene=True (--same-scene) if the frames of a stack show one scene."
        )
    return planes, found


def _described(planes: Sequence[NoisyPlane]) -> str:
    """Say what the noise of an image is, once for planes that share a model."""
    models = (plane.model for plane in planes if plane.model is not None)
    return "; ".join(dict.fromkeys(model.describe() for model in models))


def _check_repetitions(name: str, source: ImageSource) -> None:
    sizes = zip(source.axes, source.shape, strict=True)
    frames = [axis for axis, size in sizes if axis not in "YXSC" and size > 1]
    if len(frames) != 1:
        raise InputError(
            f"{name} has axes {source.axes} and shape {source.shape}: same_scene (--same-scene) "
            "needs a stack of at least two frames along a single axis."
        )


def _network(name: str, choice: Choice) -> DenoisingNetwork:
    """Return the network to start from, on its device."""
    net = resolve(name) if isinstance(choice.model, str) else choice.model
    if not isinstance(net, DenoisingNetwork) or net.equivariance != "norm" or net.channels != 1:
        raise UsageError(
            f"{name} cannot be adapted: choose a normalization-equivariant network for gray "
            "images, built by normeq.create or loaded from a weights file."
        )
    return copy.deepcopy(net).eval().to(find_device(choice.device))


def _saved(options: TuningOptions) -> checkpoint.Checkpoint | None:
    folder = options.checkpoints
    if folder is None:
        return None
    if options.resume:
        return checkpoint.newest(folder)
    if checkpoint.stored(folder):
        raise UsageError(
            f"'{folder}' contains a run that was stopped: continue it with --resume, or delete it."
        )
    return None


def _run(
    tuner: Tuner,
    judge: Judge,
    options: TuningOptions,
    report: Callable[[float], object],
    start: float,
) -> bool:
    """Take steps until they are done, time is up or the caller stops; return True for the last."""
    every = max(1, options.steps // _CHECKS)
    with stop_requests() as stop_requested:
        report(tuner.step)
        while tuner.step < options.steps:
            late = options.minutes is not None and time.monotonic() - start > 60 * options.minutes
            if late or stop_requested():
                # Kept before a check that a run without the stop would not make.
                _keep(tuner, options)
                if tuner.step % every:
                    _check(tuner, judge)
                return stop_requested()
            tuner.advance()
            report(1)
            if tuner.step % every == 0 or tuner.step == options.steps:
                _check(tuner, judge)
                _keep(tuner, options)
    return False


def _check(tuner: Tuner, judge: Judge) -> None:
    gain = tuner.check()
    log.info(
        "step %d: estimated RMSE %.4g (%.4g before), gain %+.2f ± %.2f %% of the squared error",
        tuner.step,
        gain.rmse,
        judge.rmse_before,
        100 * gain.share,
        100 * gain.error,
    )


def _keep(tuner: Tuner, options: TuningOptions) -> None:
    if options.checkpoints is not None:
        checkpoint.write(options.checkpoints, tuner.step, tuner.to_checkpoint())


def _result(
    net: DenoisingNetwork,
    name: str,
    tuner: Tuner,
    judge: Judge,
    doubt: str | None,
    about: dict[str, Any],
    stopped: bool,
) -> Tuned:
    gain = tuner.gain
    if doubt is not None:
        message = (
            f"the original weights are kept, because the gain cannot be estimated: {doubt}; state "
            "the noise if you know it."
        )
    elif gain is None or tuner.best is None:
        message = (
            f"the original weights are kept: after {tuner.step} steps the estimated squared error "
            f"is {100 * tuner.last.share:.2f} % lower, with a standard error of "
            f"{100 * tuner.last.error:.2f} %, which may be chance."
        )
    else:
        net.load_state_dict(tuner.best)
        message = (
            f"adapted in {tuner.step} steps: the estimated RMSE fell from {judge.rmse_before:.4g} "
            f"to {gain.rmse:.4g}, by {gain.decibels:.2f} dB."
        )
    improved = gain is not None
    net.card = {
        "name": f"{name}, adapted" if improved else name,
        "description": f"{name}, tuned on noisy images alone." if improved else name,
        "adapted": {**about, "improved": improved, "result": message},
        "started_from": {"weights": name, **net.card},
    }
    return Tuned(net.cpu().eval(), improved, message, stopped)


def forget(folder: Path) -> None:
    """Delete the checkpoints of a run that is finished."""
    shutil.rmtree(folder, ignore_errors=True)
