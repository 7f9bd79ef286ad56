"""An image and what the caller says, brought together: which denoiser, told what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from normeq.denoising.assumed_noise import AssumedNoise, assume_noise, check_noise
from normeq.denoising.denoiser import Denoiser
from normeq.denoising.ensemble import EnsembleDenoiser, EnsembleSize
from normeq.denoising.image_parts import shows_colors
from normeq.denoising.names import denoiser_for
from normeq.denoising.noise_options import NoiseOptions
from normeq.images.source import ImageSource

#: "default" stands for four networks, of which this one takes noise of all kinds,
ANY = "default-real"
# this one does so for colour,
_ANY_IN_COLOR = "default-color-real"
# and their twins remove white noise better. "default-fast" has a smaller twin.
_FOR_WHITE = {
    "default": {ANY: "default", _ANY_IN_COLOR: "default-color"},
    "default-fast": {ANY: "default-fast", _ANY_IN_COLOR: "default-color"},
}


@dataclass(frozen=True)
class Choice:
    """A model as the caller names it, made ready when the noise of an image is known.

    Attributes
    ----------
    model
        A name, a network or a function.
    device, compile, value_range
        See `normeq.denoising.names.denoiser_for`.
    ensemble
        How many symmetries of the square the result is the mean over: 1, 2 or 8.
    """

    model: str | Callable[..., Any] = "default"
    device: str = "auto"
    compile: bool = False
    value_range: tuple[float, float] | None = None
    ensemble: EnsembleSize = 1
    _made: dict[str | Callable[..., Any], Denoiser] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def check(self, noise: NoiseOptions) -> Denoiser:
        """Return the denoiser that would be used at first sight; refuse what it cannot be told."""
        denoiser = self._denoiser(self._first(noise))
        check_noise(denoiser, noise)
        return self._ensemble(denoiser)

    def prepare(self, source: ImageSource, noise: NoiseOptions) -> tuple[Denoiser, AssumedNoise]:
        """Return the denoiser for an image, and what is assumed of the image's noise."""
        denoiser = self._denoiser(self._first(noise, source))
        assumed = assume_noise(denoiser, source, noise)
        if assumed.is_white and denoiser.name in self._for_white:
            denoiser = self._denoiser(self._for_white[denoiser.name])
        return self._ensemble(denoiser), assumed

    def _ensemble(self, denoiser: Denoiser) -> Denoiser:
        return denoiser if self.ensemble == 1 else EnsembleDenoiser(denoiser, self.ensemble)

    @property
    def _for_white(self) -> dict[str, str]:
        """The twins of networks for all noise; empty if the model stands for itself alone."""
        return _FOR_WHITE.get(self.model.lower(), {}) if isinstance(self.model, str) else {}

    def _first(
        self, noise: NoiseOptions, source: ImageSource | None = None
    ) -> str | Callable[..., Any]:
        if not self._for_white:
            return self.model
        in_color = source is not None and noise.noise != "learned" and shows_colors(source)
        for_any = _ANY_IN_COLOR if in_color else ANY
        return self._for_white[for_any] if noise.noise == "gaussian" else for_any

    def _denoiser(self, model: str | Callable[..., Any]) -> Denoiser:
        # Weights are read and networks folded once, not once for every image of a folder.
        if model not in self._made:
            self._made[model] = denoiser_for(
                model, device=self.device, compile=self.compile, value_range=self.value_range
            )
        return self._made[model]
