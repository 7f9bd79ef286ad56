"""From a model of the noise to what is done about it, and what the denoiser is told."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from normeq.denoising.denoiser import Denoiser
from normeq.denoising.image_parts import Place, estimate_part, in_stored_units, part_reader
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.plane_noise import PlaneNoise
from normeq.images.source import ImageSource
from normeq.noise import GeneralizedAnscombe, NoiseModel
from normeq.noise.learned import learn_stabilisation_of

log = logging.getLogger(__name__)

#: Cameras smooth most where there is least to see, which is where noise is measured. In processed
#: photographs, whose noise is correlated, there is more of it elsewhere: this many times as much
#: gives the best results behind simulated cameras (benchmarks/processed_photographs.py).
PROCESSED = 1.7

#: Single channels with correlated noise are mostly from microscopes, whose images are smoother than
#: the photographs that networks learn from, and hold noise that reaches further than can be
#: measured. This multiple of the level is best there (benchmarks/microscope_noise.py).
CORRELATED = 1.2


def told_noise(
    denoiser: Denoiser,
    source: ImageSource,
    part: list[Place],
    model: NoiseModel,
    options: NoiseOptions,
) -> PlaneNoise:
    """Turn a model in physical units into what is done and told about the noise of some planes."""
    noise = _told(denoiser, source, model, options)
    if options.noise == "learned":
        return _learned(denoiser, source, part, model, noise, options)
    return noise


def _told(
    denoiser: Denoiser, source: ImageSource, model: NoiseModel, options: NoiseOptions
) -> PlaneNoise:
    stored = in_stored_units(source, model)
    lengths = lengths_of(model) if denoiser.takes_correlation else None
    strength = options.strength * _excess(denoiser, model, options)
    if stored.is_uniform:
        noise = PlaneNoise(level=strength * stored.mean_sigma, lengths=lengths)
    else:
        noise = PlaneNoise(GeneralizedAnscombe.of(stored), level=strength, lengths=lengths)
    return replace(noise, level=None, lengths=None) if denoiser.takes_sigma == "never" else noise


def _excess(denoiser: Denoiser, model: NoiseModel, options: NoiseOptions) -> float:
    """Return how many times the level that was measured a denoiser is told."""
    if model.correlation.is_white or isinstance(options.noise, NoiseModel):
        return 1.0
    return PROCESSED if denoiser.channels > 1 else CORRELATED


def _learned(
    denoiser: Denoiser,
    source: ImageSource,
    part: list[Place],
    model: NoiseModel,
    noise: PlaneNoise,
    options: NoiseOptions,
) -> PlaneNoise:
    """Fit a transform to some planes, starting from that of their model."""
    if not model.correlation.is_white:
        log.warning(
            "the noise is correlated, so pixels can be guessed from their neighbours' noise: "
            "noise='auto' is the better choice."
        )
    read, shape = part_reader(source, part)
    start = None if model.is_uniform else GeneralizedAnscombe.of(model)
    learned = learn_stabilisation_of(read, shape, denoiser.remove_unit_noise, start=start)
    stored = replace(learned, values=(learned.values - source.offset) / source.gain)
    level = None if denoiser.takes_sigma == "never" else options.strength
    return replace(noise, transform=stored, level=level)


def noise_of_colors(
    denoiser: Denoiser,
    source: ImageSource,
    parts: Mapping[str, list[Place]],
    found: Mapping[str, NoiseModel],
    options: NoiseOptions,
) -> dict[Place, PlaneNoise]:
    """Work out the noise of channels that a denoiser sees together, plane by plane.

    All channels of a plane go through one transform: colours stay what they are to each other.

    Parameters
    ----------
    denoiser, source, options
        What is told, the image, and what the caller says.
    parts
        The planes of each channel that share a model, by name.
    found
        Their models; nothing is told about planes of which one has none.
    """
    planes: dict[Place, PlaneNoise] = {}
    together: dict[tuple[int, ...], list[str]] = {}
    for name, part in parts.items():
        together.setdefault(tuple(frame for frame, _ in part), []).append(name)
    for names in together.values():
        places = [place for name in names for place in parts[name]]
        noise = PlaneNoise()
        if all(name in found for name in names):
            noise = _together(denoiser, source, places, [found[name] for name in names], options)
        planes |= dict.fromkeys(places, noise)
    return planes


def _together(
    denoiser: Denoiser,
    source: ImageSource,
    places: list[Place],
    models: Sequence[NoiseModel],
    options: NoiseOptions,
) -> PlaneNoise:
    """Tell a denoiser about the noise of several channels, each of which has its own model."""
    if all(model == models[0] for model in models):
        return _told(denoiser, source, models[0], options)
    joint = None
    if not all(model.is_uniform for model in models):
        signal_dependent = True if options.noise == "poisson-gaussian" else None
        joint = estimate_part(source, places, signal_dependent)
    # Lengths differ little between channels: those of the middle one stand for all.
    correlation = sorted(models, key=lambda model: sum(lengths_of(model)))[len(models) // 2]
    if joint is None or joint.is_uniform:
        level = math.sqrt(sum(model.mean_sigma**2 for model in models) / len(models))
        joint = NoiseModel.uniform(level, level=models[0].mean)
    joint = replace(joint, correlation=correlation.correlation)
    noise = _told(denoiser, source, joint, options)
    if noise.level is None or not denoiser.offset_per_channel:
        return noise
    levels = [(model.mean_sigma, float(joint.sigma(model.mean))) for model in models]
    return replace(noise, relative=tuple(own / shared if shared else 1.0 for own, shared in levels))


def lengths_of(model: NoiseModel) -> tuple[float, float]:
    """Return how far the noise is correlated along rows and columns."""
    return model.correlation.rows, model.correlation.columns
