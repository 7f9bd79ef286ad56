"""What is assumed of an image's noise: as the caller states it, or estimated from the image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.denoiser import Denoiser
from normeq.denoising.image_parts import Place, estimate_part, parts_of, planes_of
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.plane_noise import LevelMap, PlaneNoise
from normeq.denoising.told_noise import lengths_of, noise_of_colors, told_noise
from normeq.errors import UsageError
from normeq.images.array import ArraySource
from normeq.images.source import ImageSource
from normeq.noise import NoiseModel


@dataclass(frozen=True)
class AssumedNoise:
    """The noise of every plane of an image.

    Attributes
    ----------
    planes
        By frame and sample.
    found
        The models that were estimated or given, in physical units, by the name of their part.
    stated
        The level that the caller states, in words; of what was `found`, only the correlation then
        counts. None if the level was estimated.
    """

    planes: dict[Place, PlaneNoise]
    found: dict[str, NoiseModel]
    stated: str | None = None

    def of(self, frame: int, sample: int) -> PlaneNoise:
        """Return the noise of one plane."""
        return self.planes[frame, sample]

    @property
    def is_white(self) -> bool:
        """Whether the noise has one level in each plane, and neighbouring pixels share none."""
        return not any(
            plane.transform or plane.levels or any(plane.lengths or ())
            for plane in self.planes.values()
        )

    def lines(self) -> list[str]:
        """Say in one line for each part what its noise is taken to be."""
        return [
            f"noise{f' ({part})' if part else ''}: {self.describe(model)}"
            for part, model in self.found.items()
        ]

    def describe(self, model: NoiseModel) -> str:
        """Say what is used of a model that was found."""
        if self.stated is None:
            return model.describe()
        return f"{self.stated}; {model.correlation.describe()}"

    def as_dict(self) -> dict[str, Any]:
        """Return what was found and is used as plain data, for JSON."""
        return {
            part or "image": model.to_dict()
            if self.stated is None
            else {"correlation": model.correlation.to_dict()}
            for part, model in self.found.items()
        }


def check_noise(denoiser: Denoiser, options: NoiseOptions) -> None:
    """Refuse what a denoiser cannot be told, or the lack of what it needs to be told."""
    name = denoiser.name
    if options.sigma is not None:
        _check_sigma(denoiser, options.sigma)
    elif denoiser.takes_sigma == "always" and not _estimates(denoiser, options):
        raise UsageError(
            f"{name} needs the noise level: pass sigma, in the units of the image, or "
            "sigma='auto' to have it estimated."
        )
    if options.strength != 1 and denoiser.takes_sigma == "never":
        raise UsageError(
            f"{name} is blind: there is no noise level for strength to change, so leave it out."
        )
    if options.noise not in ("auto", "gaussian") and not denoiser.can_be_stabilised:
        raise UsageError(
            f"{name} depends on units of its own, so the variance of its noise cannot be "
            "stabilised: use an equivariant model, or noise='gaussian'."
        )
    if options.noise == "learned" and denoiser.channels > 1:
        raise UsageError(
            f"{name} sees colours together, and noise='learned' is fitted to single channels: use "
            "a model for gray images, or noise='auto'."
        )


def _check_sigma(denoiser: Denoiser, sigma: Any) -> None:
    """Refuse a noise level that is not valid, or that a denoiser cannot take."""
    if denoiser.takes_sigma == "never":
        raise UsageError(f"{denoiser.name} is blind: leave sigma out, or use another model.")
    if isinstance(sigma, str):
        if sigma != "auto":
            raise UsageError(f"sigma is {sigma!r}: use a number, an array or 'auto'.")
    elif not isinstance(sigma, ImageSource):
        levels = np.asarray(sigma, dtype=np.float64)
        if not np.isfinite(levels).all() or (levels < 0).any():
            raise UsageError(
                f"sigma is {sigma}, but a noise level must be finite and not negative."
            )


def _estimates(denoiser: Denoiser, options: NoiseOptions) -> bool:
    """Tell whether the noise is modelled: by estimates, or by the model that was given."""
    return options.noise != "gaussian" and options.sigma is None and denoiser.can_be_stabilised


def assume_noise(denoiser: Denoiser, source: ImageSource, options: NoiseOptions) -> AssumedNoise:
    """Work out what is assumed of the noise of every plane of an image.

    One model serves all planes of a channel. The pixels that are looked at depend on the shape
    and axes of the image alone.

    Parameters
    ----------
    denoiser
        What it can be told decides what is estimated.
    source
        The image.
    options
        What the caller says.
    """
    check_noise(denoiser, options)
    one_level = isinstance(options.sigma, str)  # "auto"
    if options.sigma is not None and not one_level:
        return _stated(denoiser, source, options)
    if not one_level and not _estimates(denoiser, options):
        return AssumedNoise(dict.fromkeys(planes_of(source), PlaneNoise()), {})
    parts = parts_of(source, options.each_plane)
    models = {name: _model_of(source, part, options) for name, part in parts.items()}
    found = {name: model for name, model in models.items() if model is not None}
    if denoiser.channels > 1:
        return AssumedNoise(noise_of_colors(denoiser, source, parts, found, options), found)
    planes: dict[Place, PlaneNoise] = {}
    for name, part in parts.items():
        noise = PlaneNoise()
        if name in found:
            noise = told_noise(denoiser, source, part, found[name], options)
        planes |= dict.fromkeys(part, noise)
    return AssumedNoise(planes, found)


# What the caller states ----------------------------------------------------------------------


def _stated(denoiser: Denoiser, source: ImageSource, options: NoiseOptions) -> AssumedNoise:
    """Take levels as they are; only the correlation is estimated, for a denoiser that is told."""
    levels = _levels(denoiser, source, options)
    told: dict[Place, PlaneNoise] = {}
    found: dict[str, NoiseModel] = {}
    estimated = denoiser.takes_correlation and options.noise == "auto"
    for name, part in parts_of(source, options.each_plane).items():
        model = estimate_part(source, part, None) if estimated else None
        lengths = None if model is None else lengths_of(model)
        if model is not None:
            found[name] = model
        told |= {plane: replace(levels[plane[0]], lengths=lengths) for plane in part}
    return AssumedNoise(told, found, _in_words(options.sigma))


def _in_words(sigma: Any) -> str:
    is_number = not isinstance(sigma, ImageSource) and np.ndim(sigma) == 0
    return f"sigma {float(sigma):.4g}, as stated" if is_number else "sigma as stated"


def _levels(denoiser: Denoiser, source: ImageSource, options: NoiseOptions) -> list[PlaneNoise]:
    """Return the stated noise of every frame, in stored units."""
    factor = options.strength / abs(source.gain)
    if isinstance(options.sigma, ImageSource):
        return [
            PlaneNoise(levels=_fitting(denoiser, source, options.sigma, factor))
        ] * source.frames
    levels = np.asarray(options.sigma, dtype=np.float64)
    for shape, axes in (((source.height, source.width), "YX"), (source.shape, source.axes)):
        if levels.shape == shape != source.leading:
            image = _fitting(denoiser, source, ArraySource(levels, axes), factor)
            return [PlaneNoise(levels=image)] * source.frames
    try:
        of_frames: NDArray[np.float64] = np.broadcast_to(levels, source.leading).ravel()
    except ValueError as error:
        raise UsageError(
            f"sigma has shape {levels.shape}: give one number, an array of shape "
            f"{source.leading} with one for each plane, or a map of shape {source.shape}."
        ) from error
    return [PlaneNoise(level=factor * float(level)) for level in of_frames]


def _fitting(
    denoiser: Denoiser, source: ImageSource, levels: ImageSource, factor: float
) -> LevelMap:
    """Return a map of levels if it fits the image and the denoiser, else raise."""
    if not denoiser.takes_maps:
        raise UsageError(f"{denoiser.name} takes one noise level per plane, not a map.")
    sizes = [(each.height, each.width) for each in (levels, source)]
    if sizes[0] != sizes[1] or levels.frames not in (1, source.frames):
        raise UsageError(
            f"the map of sigma has shape {levels.shape}: it must have the rows and columns of "
            f"the image, of shape {source.shape}, and as many planes or one."
        )
    return LevelMap(levels, factor)


def _model_of(source: ImageSource, part: list[Place], options: NoiseOptions) -> NoiseModel | None:
    """Return the noise of planes that share a model, in physical units."""
    if isinstance(options.noise, NoiseModel):
        return options.noise
    signal_dependent = {"auto": None, "gaussian": False}.get(options.noise, True)
    one_level = isinstance(options.sigma, str)
    return estimate_part(source, part, False if one_level else signal_dependent)
