"""Parts of a layer, denoised as the whole layer would be, and the filters of its pixels."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from normeq.denoising.arrays import array_source
from normeq.denoising.bands import Walk
from normeq.denoising.mosaics import MosaicWalk, start_walk
from normeq.denoising.names import resolve_once
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions
from normeq.errors import UsageError
from normeq.explanation import AdaptiveFilter, explain_job
from normeq.images.source import Pixels
from normeq.napari.layer_image import DenoiseSettings, LayerImage

#: Side, at most, of the parts of a view that are shown one after the other.
PART = 320
# What a denoiser that sees whole planes is shown around a part of one.
_MARGIN = 32
# Settings for which what was prepared is kept.
_KEPT = 8
# What one thread estimates, another need not.
_PREPARING = threading.Lock()


class ViewPart(NamedTuple):
    """Some rows and columns of a plane; its noise, in a line for each channel."""

    rows: slice
    columns: slice
    pixels: Pixels
    noise: list[str]


def walk_of(image: LayerImage, settings: DenoiseSettings) -> LayerWalk:
    """Return a layer ready to be denoised in parts; its noise is estimated once.

    Parameters
    ----------
    image, settings
        What to denoise, and how.
    """
    with _PREPARING:
        if settings not in image.walks:
            walk = _prepared(image, settings)
            while len(image.walks) >= _KEPT:
                del image.walks[next(iter(image.walks))]
            image.walks[settings] = walk
        found: LayerWalk = image.walks[settings]
        return found


def _prepared(image: LayerImage, settings: DenoiseSettings) -> LayerWalk:
    options = NoiseOptions(settings.sigma, strength=settings.strength)
    usual = image.walks.get(replace(settings, strength=1.0))
    if usual is not None and settings.sigma is None and len(usual.walk.noise.found) == 1:
        (model,) = usual.walk.noise.found.values()  # which holds for every strength
        options = replace(options, noise=model)
    choice = Choice(settings.model, value_range=settings.value_range)
    source = array_source(choice.check(options).channels, image.array, image.axes)
    how = WalkOptions(nan="keep", value_range=settings.value_range, bayer=settings.bayer)
    return LayerWalk(image, start_walk(source, choice, options, how))


class LayerWalk:
    """A layer, what denoises it, and what is assumed of its noise.

    Parameters
    ----------
    image
        The layer.
    walk
        The walk over it.
    """

    def __init__(self, image: LayerImage, walk: Walk) -> None:
        self.image = image
        self.walk = walk

    @property
    def noise(self) -> list[str]:
        """What was decided for the layer, and found out about its noise, line by line."""
        return self.walk.decisions()

    def view(
        self,
        place: Sequence[int],
        rows: slice,
        columns: slice,
        cancel: threading.Event | None = None,
    ) -> Iterator[ViewPart]:
        """Yield some rows and columns of a plane as they are, then part by part denoised.

        The parts in the middle come first.

        Parameters
        ----------
        place
            Where the plane is along the axes that have a slider.
        rows, columns
            What is in view.
        cancel
            Ends it when it is set.
        """
        stored = np.concatenate([self._read(each, rows, columns) for each in self._at(place)], -1)
        yield ViewPart(rows, columns, self._plane(stored, place), self.noise)
        for part in _from_the_middle(rows, columns):
            if cancel is not None and cancel.is_set():
                return
            yield ViewPart(*part, self.region(place, *part), self.noise)

    def region(self, place: Sequence[int], rows: slice, columns: slice) -> Pixels:
        """Denoise some rows and columns of a plane, ``(rows, columns)`` or with colours last.

        A denoiser that sees whole planes sees the region, and a little around it.
        """
        self._refuse_mosaic()
        source, walk = self.walk.source, self.walk
        margin = _MARGIN if walk.denoiser.halo is None else 0
        down, across = (
            _widened(rows, margin, source.height),
            _widened(columns, margin, source.width),
        )
        frames = self._at(place)
        planes = {
            frame: walk.planes(frame, walk.moments(frame, self._read(frame, down, across)))
            for frame in frames
        }
        results = walk.denoised(planes, down, across)
        pixels = np.concatenate([results[frame] for frame in frames], -1)
        top, left = rows.start - down.start, columns.start - across.start
        height, width = rows.stop - rows.start, columns.stop - columns.start
        return self._plane(pixels[top : top + height, left : left + width], place)

    def filter_at(self, place: Sequence[int], at: tuple[int, int]) -> AdaptiveFilter:
        """Return what a denoised pixel is made of; of a layer in colour, its first channel."""
        self._refuse_mosaic()
        net = resolve_once(self.walk.denoiser.name)
        frame, sample = self._at(place)[0], self._channel(place) or 0
        return explain_job(self.walk, net, frame, at, sample=sample)

    # Planes ----------------------------------------------------------------------------------

    @property
    def _sees_colours(self) -> bool:
        return self.walk.source.samples > 1

    def _channel(self, place: Sequence[int]) -> int | None:
        """Return which channel is shown, of those that are denoised together."""
        image = self.image
        if image.rgb or not self._sees_colours:
            return None
        return place[image.leading_axes.index(image.axes.index("C"))]

    def _at(self, place: Sequence[int]) -> list[int]:
        """Return the frames of the plane at a place: one for each colour that is seen alone."""
        image, leading = self.image, self.walk.source.leading
        if self._sees_colours and not image.rgb:
            channels = image.leading_axes.index(image.axes.index("C"))
            place = [index for axis, index in enumerate(place) if axis != channels]
        alone = image.rgb and not self._sees_colours
        colours = range(leading[-1]) if alone else [None]
        return [
            int(np.ravel_multi_index((*place, *([] if colour is None else [colour])), leading))
            if leading
            else 0
            for colour in colours
        ]

    def _plane(self, pixels: Pixels, place: Sequence[int]) -> Pixels:
        """Return what is shown of ``(rows, columns, samples)``."""
        if self.image.rgb:
            return pixels
        return pixels[..., self._channel(place) or 0]

    def _read(self, frame: int, rows: slice, columns: slice) -> Pixels:
        return self.walk.source.read_region(frame, rows, columns)

    def _refuse_mosaic(self) -> None:
        if isinstance(self.walk, MosaicWalk):
            raise UsageError("there is no preview of a camera's mosaic: denoise the whole layer.")


def _widened(span: slice, margin: int, length: int) -> slice:
    return slice(max(0, span.start - margin), min(length, span.stop + margin))


def _from_the_middle(rows: slice, columns: slice) -> list[tuple[slice, slice]]:
    """Cut a rectangle into parts, those in the middle first."""
    parts = product(_spans(rows), _spans(columns))
    middle = [(span.start + span.stop) / 2 for span in (rows, columns)]

    def distance(part: tuple[slice, slice]) -> float:
        return math.dist([(span.start + span.stop) / 2 for span in part], middle)

    return sorted(parts, key=distance)


def _spans(whole: slice) -> list[slice]:
    """Cut an interval into the fewest parts of nearly the same length."""
    count = max(1, -(-(whole.stop - whole.start) // PART))
    ends = np.linspace(whole.start, whole.stop, count + 1).round().astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]
