"""What the caller says about the noise of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from normeq.errors import UsageError
from normeq.images.source import ImageFile, ImageSource
from normeq.noise import NoiseModel

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
            raise UsageError(
                "sigma means noise of one known level: leave out either sigma or noise."
            )
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
