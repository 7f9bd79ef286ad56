"""Variance as an affine function of the level, from blocks of which many hold more than noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special  # scipy.stats, which has the same functions, takes 0.6 s to import

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Blocks above the line by more standard deviations are left out, round by round.
_LIMITS = (4.0, 3.0, 2.0, 1.5, *(1.0,) * 10)
# The line that the rounds start from goes through a low quantile of the energies at each level.
_START = 0.2
_MOST_BINS = 16
_BLOCKS_A_BIN = 32
_FEWEST = 8
# How little a level may count at least: a real slope shows only where there is texture, too.
_MOST_UNEVEN = 4.0
# Least variance of a block, as a share of the mean, so that a black area does not decide alone.
_LEAST = 0.01


@dataclass(frozen=True)
class Line:
    """``variance = height + slope · (level - center)``, and the uncertainty of both."""

    slope: float
    height: float
    center: float
    covariance: tuple[float, float, float]

    def at(self, levels: ArrayLike) -> Floats:
        """Return the variance at given levels."""
        away = np.asarray(levels, dtype=np.float64) - self.center
        variance: Floats = self.height + self.slope * away
        return variance

    def upper_at(self, level: float) -> float:
        """Return the variance at a level, plus its standard error."""
        of_slope, joint, of_height = self.covariance
        away = level - self.center
        square = of_height + 2 * away * joint + away**2 * of_slope
        return self.height + self.slope * away + float(max(square, 0.0) ** 0.5)


def level_bins(levels: Floats, blocks_a_bin: int = _BLOCKS_A_BIN) -> list[NDArray[np.intp]]:
    """Group blocks by their level, as many in each group."""
    count = int(np.clip(len(levels) // blocks_a_bin, 1, _MOST_BINS))
    return np.array_split(np.argsort(levels, kind="stable"), count)


def fit_line(
    levels: Floats,
    energies: Floats,
    groups: NDArray[np.intp],
    *,
    freedom: float,
    tail_freedom: float,
    sloped: bool,
) -> Line:
    """Fit the variance of the noise to the energies of blocks.

    In a block of nothing but noise the energy is the variance times a chi-squared variable of
    `freedom` degrees; texture only adds to it. So blocks well above the line are left out, and
    what that takes away from the mean of the others is given back.

    Parameters
    ----------
    levels, energies
        Of each block.
    groups
        A number for each block; the uncertainty is measured by leaving out one group at a time.
    freedom
        Degrees of freedom of the energy of Gaussian noise.
    tail_freedom
        How many pixels a block is worth where a few of them hold much of its energy.
    sloped
        Whether the variance depends on the level.
    """
    line, floor = _start(levels, energies, freedom, sloped)
    for spread in _LIMITS:
        variance = np.maximum(line.at(levels), floor)
        # Counts of few photons have heavy tails, and their blocks more uneven energies.
        tails = max(line.slope, 0.0) ** 2 / variance
        own = 1.0 / (1.0 / freedom + tails / (2.0 * tail_freedom))
        limit = 1.0 + spread * np.sqrt(2.0 / own)
        # Shares of a chi-squared distribution with `own` degrees of freedom.
        inside = special.chdtr(own, limit * own)
        restored = energies * (inside / special.chdtr(own + 2, limit * own))
        kept = energies < limit * variance
        if kept.sum() < _FEWEST:
            break
        weights = (variance**-2 / _unevenness(levels, energies / variance, own))[kept]
        line = _weighted(levels[kept], restored[kept], weights, groups[kept], sloped)
    return line


def _unevenness(levels: Floats, relative: Floats, freedom: Floats) -> Floats:
    """Return by how much more the energies at each level scatter than those of noise: 1 to 4.

    Texture is uneven: where blocks of one level differ much, even the quietest hold some, and
    the level counts for less.
    """
    found = np.ones_like(levels)
    for part in level_bins(levels):
        middle = np.median(relative[part])
        scatter = np.mean((relative[part] - middle) ** 2 * freedom[part] / 2)
        found[part] = np.clip(scatter, 1.0, _MOST_UNEVEN)
    return found


def _start(levels: Floats, energies: Floats, freedom: float, sloped: bool) -> tuple[Line, float]:
    """Return a first line, and the least variance that any block is taken to have."""
    bins = level_bins(levels)
    # The quantile of a chi-squared distribution.
    quiet = 2 * special.gammaincinv(freedom / 2, _START) / freedom
    centers = np.array([levels[part].mean() for part in bins])
    heights = np.array([np.quantile(energies[part], _START) for part in bins]) / quiet
    floor = max(_LEAST * float(heights.mean()), np.finfo(float).tiny)
    weights = np.maximum(heights, floor) ** -2.0
    return _weighted(centers, heights, weights, np.arange(len(bins)), sloped), floor


def _weighted(
    levels: Floats, energies: Floats, weights: Floats, groups: NDArray[np.intp], sloped: bool
) -> Line:
    """Fit a line by weighted least squares, its uncertainty by the jackknife over groups."""
    weights = weights / weights.max()
    center = float((weights * levels).sum() / weights.sum())
    moments = np.stack([np.ones_like(levels), levels - center, (levels - center) ** 2])
    moments = np.concatenate([moments, moments[:2] * energies]) * weights
    sums = np.stack([np.bincount(groups, row) for row in moments])
    total = sums.sum(1)
    heights, slopes = _solve(total[:, None] - sums, sloped)
    (height,), (slope,) = _solve(total[:, None], sloped)
    # Groups without a block in the fit leave it as it is, and count for nothing.
    present = max(2, int((sums[0] > 0).sum()))
    share = (present - 1) / present
    dh, ds = heights - height, slopes - slope
    of_slope, joint, of_height = (
        float(share * (a * b).sum()) for a, b in ((ds, ds), (ds, dh), (dh, dh))
    )
    return Line(float(slope), float(height), center, (of_slope, joint, of_height))


def _solve(sums: Floats, sloped: bool) -> tuple[Floats, Floats]:
    """Solve the normal equations, one column per problem."""
    ones, first, second, energy, product = sums
    level = energy / np.maximum(ones, np.finfo(float).tiny)
    determinant = ones * second - first**2
    enough = determinant > 1e-9 * np.maximum(ones * second, np.finfo(float).tiny)
    if not sloped:
        return level, np.zeros_like(level)
    safe = np.where(enough, determinant, 1.0)
    slope = np.where(enough, (ones * product - first * energy) / safe, 0.0)
    height = np.where(enough, (second * energy - first * product) / safe, level)
    return height, slope
