"""What the page shows of an image: tiles of it and of its denoised twin, filters, noise."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import nn

from normeq.denoising.bands import Walk
from normeq.denoising.mosaics import start_walk
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.plane import Plane
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions
from normeq.errors import UsageError
from normeq.explanation import MOST_PIXELS, AdaptiveFilter, explain_job, told_level
from normeq.explorer.offered_models import OfferedModel, offered_models
from normeq.explorer.pyramid import RecentArrays, TilePlace, tile_pixels
from normeq.explorer.rescaled import RescaledSource, SharedReader
from normeq.images.bayer import Bayer, BayerSource
from normeq.images.source import ImageSource

Floats = NDArray[np.float64]

# Memory for tiles that were read or computed lately.
_RECENT_BYTES = 2**28
# How long the last tile may take, in seconds.
_LAST_TILE = 3
# Values that are drawn black and white leave out this share of the pixels at either end.
_CUT = 0.001
# They are found from this many rows of a frame, and about this many pixels.
_ROWS, _SAMPLED = 64, 2**18


@dataclass(frozen=True)
class Setting:
    """How the twin is computed: by a model, from ``gain · y + offset``, with noise of one level.

    Attributes
    ----------
    model
        Its name among those offered.
    sigma
        Noise level in the image's own units; None lets it be estimated.
    gain, offset
        The change of units.
    """

    model: str
    sigma: float | None = None
    gain: float = 1.0
    offset: float = 0.0

    @property
    def in_own_units(self) -> Setting:
        """The same without a change of units."""
        return replace(self, gain=1.0, offset=0.0)


class Exploration:
    """An image that is being looked at; every method may be called by several threads.

    Parameters
    ----------
    image
        The opened image.
    model, value_range, device
        What the user has chosen, as in `normeq.denoise`.
    bayer
        The pattern of a camera's raw image, whose four planes are then shown one by one.
    """

    def __init__(
        self,
        image: ImageSource,
        model: str = "default",
        *,
        value_range: tuple[float, float] | None = None,
        device: str = "auto",
        bayer: Bayer | None = None,
    ) -> None:
        self._reader = SharedReader(image if bayer in (None, "none") else BayerSource(image))
        self._bayer = bayer
        self._device = device
        self.stored_dtype = image.dtype
        self.image = RescaledSource(self._reader)
        self.channels = self.image.samples - self.image.alpha
        self._model, self._value_range = model, value_range
        self._recent = RecentArrays(_RECENT_BYTES)
        self._computing = threading.RLock()
        self._stopped = threading.Event()
        self.shown_range = lru_cache(maxsize=256)(self._shown_range)
        self._walk = lru_cache(maxsize=8)(self._new_walk)
        self._planes = lru_cache(maxsize=32)(self._read_planes)

    @cached_property
    def models(self) -> Mapping[str, OfferedModel]:
        """The models to choose from, by name."""
        ordinary_range = self._value_range or self.shown_range(0)
        return offered_models(self._model, self._value_range, ordinary_range)

    def stop(self) -> None:
        """End what is being computed after the present tile, if that does not take too long."""
        self._stopped.set()
        if self._computing.acquire(timeout=_LAST_TILE):
            self._computing.release()

    # The image -------------------------------------------------------------------------------

    def _shown_range(self, frame: int) -> tuple[float, float]:
        """Return the values of a frame that are drawn black and white."""
        height, width = self.image.height, self.image.width
        rows = np.unique(np.linspace(0, height - 1, _ROWS).astype(int))
        step = max(1, len(rows) * width * self.channels // _SAMPLED)
        sampled = [
            self.image.read(frame, row, row + 1)[0, ::step, : self.channels].ravel()
            for row in map(int, rows)
        ]
        values = np.concatenate(sampled)
        values = values[np.isfinite(values)]
        if values.size == 0:
            return 0.0, 1.0
        low, high = (float(limit) for limit in np.quantile(values, (_CUT, 1 - _CUT)))
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    def input_tile(self, place: TilePlace) -> Floats:
        """Return a tile of the image in its own units, ``(rows, columns, channels)``."""
        kept = self._recent.get(place)
        if kept is not None:
            return kept
        if place.level:
            size = (self.image.height, self.image.width)
            return self._recent.keep(place, tile_pixels(place, size, self.input_tile))
        region = place.region(self.image.height, self.image.width)
        pixels = self.image.read_region(place.frame, *region)[..., : self.channels]
        return self._recent.keep(place, pixels)

    # The denoised twin -----------------------------------------------------------------------

    def denoised_tile(self, setting: Setting, place: TilePlace) -> Floats:
        """Return a tile of the twin, in the units of the setting."""
        kept = self._recent.get((setting, place))
        if kept is not None:
            return kept
        size = (self.image.height, self.image.width)
        if place.level:
            pixels = tile_pixels(place, size, lambda child: self.denoised_tile(setting, child))
        else:
            pixels = self.denoised_region(setting, place.frame, *place.region(*size))
        return self._recent.keep((setting, place), pixels)

    def denoised_region(self, setting: Setting, frame: int, rows: slice, columns: slice) -> Floats:
        """Return some rows and columns of the twin, in the units of the setting."""
        with self._computing:
            walk = self._walk(setting)
            if walk.denoiser.halo is None:
                return self._denoised_plane(setting, frame)[rows, columns]
            planes = {frame: self._planes(setting, frame)}
            return walk.denoised(planes, rows, columns)[frame][..., : self.channels]

    def _denoised_plane(self, setting: Setting, frame: int) -> Floats:
        """Return the twin of a whole frame, for a denoiser that has to see it whole."""
        kept = self._recent.get((setting, frame))
        if kept is not None:
            return kept
        walk, pixels = self._walk(setting), self.image.height * self.image.width
        if pixels > MOST_PIXELS:
            raise UsageError(
                f"{walk.denoiser.name} denoises whole planes, and those of this image have "
                f"{pixels:,} pixels; the limit here is {MOST_PIXELS:,}. Choose a network, or run "
                f"'normeq denoise --model {walk.denoiser.name}'."
            )
        everywhere = slice(0, self.image.height), slice(0, self.image.width)
        planes = {frame: self._planes(setting, frame)}
        result = walk.denoised(planes, *everywhere)[frame][..., : self.channels]
        return self._recent.keep((setting, frame), result)

    def _new_walk(self, setting: Setting) -> Walk:
        offered = self.models[setting.model]
        source = RescaledSource(self._reader, setting.gain, setting.offset)
        sigma = None if setting.sigma is None else setting.gain * setting.sigma
        walk = WalkOptions(
            nan="keep",
            value_range=offered.value_range,
            bayer=None if self._bayer is None else "none",
            cancel=self._stopped,
        )
        choice = Choice(offered.model, self._device, value_range=offered.value_range)
        return start_walk(source, choice, noise_options_for(choice, sigma), walk)

    def _read_planes(self, setting: Setting, frame: int) -> list[Plane]:
        return self._walk(setting).read_planes(frame)

    def noise_found(self, setting: Setting) -> list[str]:
        """Say what is assumed of the noise, in a line for each channel."""
        with self._computing:
            return self._walk(setting).decisions()

    def denoiser_name(self, setting: Setting) -> str:
        """Return the name of what denoises: default stands for several networks."""
        if not isinstance(self.models[setting.model].model, str):
            return setting.model
        with self._computing:
            return self._walk(setting).denoiser.name

    # The network alone -----------------------------------------------------------------------

    def network(self, setting: Setting) -> nn.Module | None:
        """Return the network that denoises, if it is one."""
        with self._computing:
            name = self._walk(setting).denoiser.name
        return self.models[setting.model].network(name)

    def told_level(self, setting: Setting, frame: int, sample: int) -> float | None:
        """Return the noise level that the network is told, in the units of the setting."""
        with self._computing:
            return told_level(self._walk(setting), frame, sample)

    def adaptive_filter(
        self, setting: Setting, frame: int, at: tuple[int, int], channel: int
    ) -> AdaptiveFilter:
        """Return what a pixel of the twin is made of, for the network alone."""
        with self._computing:
            walk, net = self._walk(setting), self.network(setting)
            return explain_job(walk, net, frame, at, sample=channel)


def noise_options_for(choice: Choice, sigma: float | None) -> NoiseOptions:
    """Return what is said of the noise; a level is estimated for a model that cannot do without."""
    if sigma is not None:
        return NoiseOptions(sigma=sigma)
    try:
        options = NoiseOptions()
        choice.check(options)
    except UsageError:  # it needs a level
        options = NoiseOptions(sigma="auto")
        choice.check(options)
    return options
