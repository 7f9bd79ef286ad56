"""What was removed from an image, compared with the noise that was in it.

All comparisons are effect sizes, unchanged when the image becomes ``λ·y + μ``. Their limits are
exceeded by few images with white noise of the level that was assumed (benchmarks/quality.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normeq.denoising.probing import ProbedRegion
from normeq.noise import Correlation, NoiseModel

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Distances in pixels up to which autocorrelations are shown.
LAGS = 4
# What is finer than a Gaussian of this width is detail.
_DETAIL = 2.0
# Noise of a normal distribution is this many standard deviations strong in 7 pixels of a million.
_FAR = 4.5
# The noise of this many photons is nearly normal.
_PHOTONS = 16.0


@dataclass(frozen=True)
class ResidualStatistics:
    """What was removed from a region.

    Attributes
    ----------
    pixels
        How many the region has.
    down, across
        Autocorrelation of what was removed along both axes, at distances 0 to `LAGS`.
    noise_down, noise_across
        Those of the noise.
    amount
        Variance of what was removed, relative to what the denoiser removes of such noise.
    brightness
        The same in the brighter half of the pixels relative to the darker half.
    detail
        What fine detail of the result and what was removed have in common, as a share of the
        variance of the noise, and beyond what noise alone explains. Positive: detail was removed.
    far
        Share of the pixels from which more than 4.5 standard deviations of the noise was removed,
        where photons are many.
    """

    pixels: int
    down: tuple[float, ...]
    across: tuple[float, ...]
    noise_down: tuple[float, ...]
    noise_across: tuple[float, ...]
    amount: float
    brightness: float
    detail: float
    far: float

    @property
    def autocorrelation(self) -> float:
        """The largest difference to the autocorrelation of the noise, between neighbours."""
        return max(
            abs(self.down[1] - self.noise_down[1]), abs(self.across[1] - self.noise_across[1])
        )


def residual_statistics(region: ProbedRegion, noise: NoiseModel) -> ResidualStatistics:
    """Measure what was removed from a region, given its noise in stored units."""
    known = np.isfinite(region.denoised)
    removed = np.where(known, region.noisy - region.denoised, 0.0)
    removed -= np.where(known, removed[known].mean(), 0.0)
    clean = np.where(known, region.denoised, region.denoised[known].mean())
    sigma = np.where(known, region.sigma, 0.0)
    expected = np.square(sigma * region.probes - region.responses).mean(0)
    bright = known & (clean > np.median(clean[known]))
    dark = known & ~bright
    shares = [_ratio(np.square(removed), expected, part) for part in (known, bright, dark)]
    fields = zip(region.probes, region.responses, strict=True)
    of_noise = np.mean([_shared(sigma * n - moved, moved, known) for n, moved in fields])
    power = max(float(np.square(sigma).sum()), np.finfo(float).tiny)
    # Single photons are far from a normal distribution, and nothing is wrong with them.
    normal = known & (sigma >= _PHOTONS**0.5 * noise.gain)
    far = np.abs(removed[normal]) > _FAR * sigma[normal]
    return ResidualStatistics(
        int(known.sum()),
        tuple(_autocorrelation(removed, known, 0)),
        tuple(_autocorrelation(removed, known, 1)),
        tuple(_of_noise(noise.correlation, 0)),
        tuple(_of_noise(noise.correlation, 1)),
        shares[0],
        shares[1] / shares[2] if shares[2] > 0 else 1.0,
        float(_shared(removed, clean, known) - of_noise) / power,
        float(far.mean()) if far.size else 0.0,
    )


def together(parts: Sequence[ResidualStatistics]) -> ResidualStatistics:
    """Return the means over regions, each counting as many times as it has pixels."""
    weights = [part.pixels for part in parts]

    def mean(name: str) -> Any:
        values = np.average([getattr(part, name) for part in parts], axis=0, weights=weights)
        return float(values) if values.ndim == 0 else tuple(map(float, values))

    names = [name for name in vars(parts[0]) if name != "pixels"]
    return ResidualStatistics(pixels=sum(weights), **{name: mean(name) for name in names})


def _ratio(values: Floats, expected: Floats, where: Mask) -> float:
    total = float(expected[where].sum())
    return float(values[where].sum()) / total if total > 0 else 1.0


def _autocorrelation(values: Floats, known: Mask, axis: int) -> list[float]:
    """Return the autocorrelation along an axis; unknown pixels hold 0 and do not count."""
    values, known = np.moveaxis(values, axis, 0), np.moveaxis(known, axis, 0)
    found = []
    for lag in range(LAGS + 1):
        pairs = int((known[lag:] & known[: len(known) - lag]).sum())
        product = float((values[lag:] * values[: len(values) - lag]).sum())
        found.append(product / pairs if pairs else 0.0)
    return [each / found[0] for each in found] if found[0] > 0 else [1.0] + [0.0] * LAGS


def _of_noise(correlation: Correlation, axis: int) -> Floats:
    table = np.array(correlation.autocorrelation)
    line = table[:, 0] if axis == 0 else table[0]
    rho = np.zeros(LAGS + 1)
    rho[0] = 1.0
    if not correlation.is_white:
        rho[: len(line)] = line[: LAGS + 1]
    return rho


def _shared(removed: Floats, kept: Floats, known: Mask) -> float:
    """Return the sum of products of what was removed with the fine detail of what was kept."""
    detail = kept - ndimage.gaussian_filter(kept, _DETAIL, mode="mirror")
    return float((removed * detail)[known].sum())
