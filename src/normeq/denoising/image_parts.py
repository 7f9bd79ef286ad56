"""The planes of an image that share one noise model, and the estimate of it."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from normeq.errors import InputError
from normeq.images.source import ImageSource
from normeq.noise import NoiseModel, estimate_noise_of
from normeq.noise.sampling import Reader, sampled_regions

log = logging.getLogger(__name__)

#: Frame and sample of a plane.
Place = tuple[int, int]


def planes_of(source: ImageSource) -> list[Place]:
    """List the planes of an image; an opacity is not one."""
    samples = range(source.samples - source.alpha)
    return [(frame, sample) for frame in range(source.frames) for sample in samples]


def parts_of(source: ImageSource, each_plane: bool) -> dict[str, list[Place]]:
    """Group the planes that share a model, under a name: those of a channel, or each its own."""
    channel_axis = source.leading_axes.find("C")
    several = source.samples - source.alpha > 1
    parts: dict[str, list[Place]] = {}
    for frame, sample in planes_of(source):
        words = []
        if channel_axis >= 0:
            words.append(f"channel {np.unravel_index(frame, source.leading)[channel_axis]}")
        if several:
            words.append(f"channel {sample}")
        if each_plane and source.frames > 1:
            words.append(f"plane {frame}")
        parts.setdefault(", ".join(words), []).append((frame, sample))
    return parts


def shows_colors(source: ImageSource) -> bool:
    """Tell whether an image is in colour: one whose three channels are the same is gray.

    The pixels that are looked at depend on its shape alone.
    """
    if not source.is_color:
        return False
    for region in sampled_regions(source.frames, source.height, source.width):
        pixels = source.read_region(region.frame, region.rows, region.columns)
        red, *others = np.moveaxis(pixels, -1, 0)[: source.samples - source.alpha]
        if any(not np.array_equal(red, other) for other in others):
            return True
    return False


def estimate_part(
    source: ImageSource, part: list[Place], signal_dependent: bool | None
) -> NoiseModel | None:
    """Estimate the noise of some planes; None where there is nothing to estimate it from."""
    read, shape = part_reader(source, part)
    try:
        with np.errstate(over="ignore"):  # said in words instead
            return estimate_noise_of(read, shape, signal_dependent=signal_dependent, cautious=True)
    except InputError as error:
        log.info("noise: not estimated, because %s", error)
        return None


def in_stored_units(source: ImageSource, model: NoiseModel) -> NoiseModel:
    """Return a model of physical values as one of the values that the image stores."""
    return model.rescaled(1 / source.gain, -source.offset / source.gain)


def part_reader(source: ImageSource, part: list[Place]) -> tuple[Reader, tuple[int, int, int]]:
    """Return what reads regions of planes in physical units, and the shape of the stack."""

    def read(index: int, rows: slice, columns: slice) -> NDArray[np.float64]:
        frame, sample = part[index]
        return source.physical(source.read_region(frame, rows, columns)[..., sample])

    return read, (len(part), source.height, source.width)
