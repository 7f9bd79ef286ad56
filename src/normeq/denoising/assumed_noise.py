"""What is assumed of an image's noise: as the caller states it, or estimated from the image."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normeq.denoising.denoiser import Denoiser
from normeq.denoising.plane_noise import LevelMap, PlaneNoise
from normeq.errors import InputError, UsageError
from normeq.images.array import ArraySource
from normeq.images.source import ImageFile, ImageSource
from normeq.noise import GeneralizedAnscombe, NoiseModel, estimate_noise_of
from normeq.noise.learned import learn_stabilisation_of
from normeq.noise.sampling import Reader

log = logging.getLogger(__name__)

NoiseName = Literal["auto", "gaussian", "poisson-gaussian", "learned"]
NOISE_NAMES: tuple[NoiseName, ...] = get_args(NoiseName)
#: A level in the image's units, one for each plane, a map, or "auto" for one that is estimated.
Sigma = ArrayLike | ImageSource | None


@dataclass(frozen=True)
class NoiseOptions:
    """What the caller says about the noise.

    Attributes
    ----------
    sigma
        See `Sigma`.
    noise
        What kind of noise it is, or a model of it in the image's units.
    strength
        Factor on whatever level the denoiser is told.
    each_plane
        Whether every plane of a stack gets an estimate of its own.
    """

    sigma: Sigma = None
    noise: NoiseName | NoiseModel = "auto"
    strength: float = 1.0
    each_plane: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.noise, NoiseModel) and self.noise not in NOISE_NAMES:
            raise UsageError(
                f"noise is {self.noise!r}: use {', '.join(NOISE_NAMES)}, or a NoiseModel."
            )
        if self.sigma is not None and self.noise not in ("auto", "gaussian"):
            raise UsageError("sigma states noise of one level: leave out either sigma or noise.")
        if not 0 < self.strength < float("inf"):
            raise UsageError(f"strength is {self.strength:g}, but must be a positive number.")

    @property
    def identity(self) -> str:
        """A text that is equal for equal results."""
        noise = self.noise.to_dict() if isinstance(self.noise, NoiseModel) else self.noise
        return f"{_identity_of(self.sigma)} {noise} {self.strength} {self.each_plane}"


def _identity_of(sigma: Sigma) -> str:
    if isinstance(sigma, ImageFile):
        written = sigma.path.stat()
        return f"{sigma.path.resolve()} {written.st_size} {written.st_mtime_ns}"
    return sigma if isinstance(sigma, str) else repr(np.asarray(sigma).tolist())


@dataclass(frozen=True)
class AssumedNoise:
    """The noise of every plane of an image.

    Attributes
    ----------
    planes
        By frame and sample.
    found
        The models that were estimated or given, in physical units, by the name of their part.
    """

    planes: dict[tuple[int, int], PlaneNoise]
    found: dict[str, NoiseModel]

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
        """Say in one line for each part what was found."""
        return [
            f"noise{f' ({part})' if part else ''}: {model.describe()}"
            for part, model in self.found.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {part or "image": model.to_dict() for part, model in self.found.items()}


def check_noise(denoiser: Denoiser, options: NoiseOptions) -> None:
    """Refuse what a denoiser cannot be told, or the lack of what it needs to be told."""
    sigma, name = options.sigma, denoiser.name
    if sigma is None:
        if denoiser.takes_sigma == "always" and not _estimates(denoiser, options):
            raise UsageError(
                f"{name} needs the noise level: pass sigma, in the units of the image, or "
                "sigma='auto' to have it estimated."
            )
    elif denoiser.takes_sigma == "never":
        raise UsageError(f"{name} is blind: leave sigma out, or use another model.")
    elif not isinstance(sigma, str | ImageSource):
        levels = np.asarray(sigma, dtype=np.float64)
        if not np.isfinite(levels).all() or (levels < 0).any():
            raise UsageError(f"sigma is {sigma}, but a noise level is a number from 0 up.")
    elif isinstance(sigma, str) and sigma != "auto":
        raise UsageError(f"sigma is {sigma!r}: use a number, an array or 'auto'.")
    if options.strength != 1 and denoiser.takes_sigma == "never":
        raise UsageError(f"{name} is blind: it takes no noise level that strength could change.")
    if options.noise not in ("auto", "gaussian") and not denoiser.can_be_stabilised:
        raise UsageError(
            f"{name} follows units of its own, so the variance of its noise cannot be "
            "stabilised: use an equivariant model, or noise='gaussian'."
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
        return AssumedNoise(dict.fromkeys(_planes_of(source), PlaneNoise()), {})
    planes: dict[tuple[int, int], PlaneNoise] = {}
    found: dict[str, NoiseModel] = {}
    for name, part in _parts(source, options.each_plane).items():
        model = _model_of(source, part, options)
        if model is not None:
            found[name] = model
        noise = PlaneNoise() if model is None else _told(denoiser, source, model, options)
        if options.noise == "learned" and model is not None:
            noise = _learned(denoiser, source, part, model, noise)
        planes |= dict.fromkeys(part, noise)
    return AssumedNoise(planes, found)


# What the caller states ----------------------------------------------------------------------


def _stated(denoiser: Denoiser, source: ImageSource, options: NoiseOptions) -> AssumedNoise:
    """Take levels as they are; only the correlation is estimated, for a denoiser that is told."""
    levels = _levels(denoiser, source, options)
    told: dict[tuple[int, int], PlaneNoise] = {}
    found: dict[str, NoiseModel] = {}
    estimated = denoiser.takes_correlation and options.noise == "auto"
    for name, part in _parts(source, options.each_plane).items():
        model = _estimate(source, part, None) if estimated else None
        lengths = None if model is None else _lengths(model)
        if model is not None:
            found[name] = model
        told |= {plane: replace(levels[plane[0]], lengths=lengths) for plane in part}
    return AssumedNoise(told, found)


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
        raise UsageError(f"{denoiser.name} takes one noise level for a plane, not a map of it.")
    sizes = [(each.height, each.width) for each in (levels, source)]
    if sizes[0] != sizes[1] or levels.frames not in (1, source.frames):
        raise UsageError(
            f"the map of sigma has shape {levels.shape}: it must have the rows and columns of "
            f"the image, of shape {source.shape}, and as many planes or one."
        )
    return LevelMap(levels, factor)


# What is estimated ---------------------------------------------------------------------------


def _planes_of(source: ImageSource) -> list[tuple[int, int]]:
    samples = range(source.samples - source.alpha)
    return [(frame, sample) for frame in range(source.frames) for sample in samples]


def _parts(source: ImageSource, each_plane: bool) -> dict[str, list[tuple[int, int]]]:
    """Group the planes that share a model, under a name: those of a channel, or each its own."""
    leading = [axis for axis in source.axes if axis not in "YX"][: len(source.leading)]
    channel_axis = leading.index("C") if "C" in leading else None
    several = source.samples - source.alpha > 1
    parts: dict[str, list[tuple[int, int]]] = {}
    for frame, sample in _planes_of(source):
        words = []
        if channel_axis is not None:
            words.append(f"channel {np.unravel_index(frame, source.leading)[channel_axis]}")
        if several:
            words.append(f"channel {sample}")
        if each_plane and source.frames > 1:
            words.append(f"plane {frame}")
        parts.setdefault(", ".join(words), []).append((frame, sample))
    return parts


def _model_of(
    source: ImageSource, part: list[tuple[int, int]], options: NoiseOptions
) -> NoiseModel | None:
    """Return the noise of planes that share a model, in physical units."""
    if isinstance(options.noise, NoiseModel):
        return options.noise
    signal_dependent = {"auto": None, "gaussian": False}.get(options.noise, True)
    one_level = isinstance(options.sigma, str)
    return _estimate(source, part, False if one_level else signal_dependent)


def _estimate(
    source: ImageSource, part: list[tuple[int, int]], signal_dependent: bool | None
) -> NoiseModel | None:
    """Estimate the noise of some planes; None where there is nothing to estimate it from."""
    read, shape = _reader(source, part)
    try:
        with np.errstate(over="ignore"):  # said in words instead
            return estimate_noise_of(read, shape, signal_dependent=signal_dependent, cautious=True)
    except InputError as error:
        log.info("noise: not estimated, because %s", error)
        return None


def _reader(
    source: ImageSource, part: list[tuple[int, int]]
) -> tuple[Reader, tuple[int, int, int]]:
    """Return what reads regions of planes in physical units, and the shape of the stack."""

    def read(index: int, rows: slice, columns: slice) -> NDArray[np.float64]:
        frame, sample = part[index]
        return source.physical(source.read(frame, rows.start, rows.stop)[:, columns, sample])

    return read, (len(part), source.height, source.width)


# What the denoiser is told -------------------------------------------------------------------


def _told(
    denoiser: Denoiser, source: ImageSource, model: NoiseModel, options: NoiseOptions
) -> PlaneNoise:
    """Turn a model in physical units into what is done and told about the noise of a plane."""
    stored = model.rescaled(1 / source.gain, -source.offset / source.gain)
    lengths = _lengths(model) if denoiser.takes_correlation else None
    if stored.is_uniform:
        noise = PlaneNoise(level=options.strength * stored.mean_sigma, lengths=lengths)
    else:
        noise = PlaneNoise(GeneralizedAnscombe.of(stored), level=options.strength, lengths=lengths)
    can_see_it = stored.is_uniform and model.correlation.is_white
    is_asked_for = options.strength != 1 or options.sigma is not None
    if denoiser.takes_sigma == "never" or (
        denoiser.takes_sigma == "optional" and can_see_it and not is_asked_for
    ):
        return replace(noise, level=None, lengths=None)
    return noise


def _learned(
    denoiser: Denoiser,
    source: ImageSource,
    part: list[tuple[int, int]],
    model: NoiseModel,
    noise: PlaneNoise,
) -> PlaneNoise:
    """Fit a transform to some planes, starting from that of their model."""
    if not model.correlation.is_white:
        log.warning(
            "the noise is correlated, so pixels can be guessed from their neighbours' noise: "
            "noise='auto' is the better choice."
        )
    read, shape = _reader(source, part)
    start = None if model.is_uniform else GeneralizedAnscombe.of(model)
    learned = learn_stabilisation_of(read, shape, denoiser.remove_unit_noise, start=start)
    stored = replace(learned, values=(learned.values - source.offset) / source.gain)
    level = None if denoiser.takes_sigma == "never" else 1.0
    return replace(noise, transform=stored, level=level)


def _lengths(model: NoiseModel) -> tuple[float, float]:
    return model.correlation.rows, model.correlation.columns
