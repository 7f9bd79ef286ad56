"""Whether a network has become better, as far as held-out tiles can tell.

The difference between two networks is estimated with the same noise and the same probes, so that
most of the fluctuation cancels. What an error in the noise level would do to it is part of the
verdict: a gain counts only if it is one at every level that is plausible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import nn

from normeq.adaptation.held_out import HeldOut, Terms
from normeq.adaptation.risk import mean_risk

# By how much the noise level may be wrong: where it is uniform or stated, and where an estimate had
# to find out how it grows with the signal (docs/noise.md shows how far such estimates are off).
_DOUBT = 0.01
_SIGNAL_DOUBT = 0.05
# What is removed may differ this much from the noise that is assumed: in level, and, as a standard
# deviation, from tile to tile. Beyond that, as where light is so scarce that no transform makes the
# noise uniform, the estimates are wrong by more than there is to gain.
_LEVEL_OFF = 0.05
_UNEVEN = 0.06
# The smallest squared error, in units of the noise, that shares are taken of.
_LEAST_ERROR = 1e-3
# A gain that is not larger than this many standard errors may be chance.
_ERRORS = 2.0


@dataclass(frozen=True)
class Gain:
    """By how much an estimated squared error fell, as a share of it.

    Attributes
    ----------
    share
        The least over all plausible noise levels.
    error
        Its standard error.
    rmse
        The estimated root mean squared error now, in the image's units.
    """

    share: float
    error: float
    rmse: float

    @property
    def certain(self) -> float:
        """What is gained for certain: the share less twice its standard error."""
        return self.share - _ERRORS * self.error

    @property
    def decibels(self) -> float:
        """The gain as a difference of PSNR."""
        return -10 * math.log10(max(1 - self.share, 1e-12))


class Judge:
    """Compares networks with the one that a tuning starts from.

    Parameters
    ----------
    held_out
        The tiles.
    before
        Terms of the network it starts from.
    level
        The level of the noise, relative to the one the tiles are in units of.
    is_rough
        Whether it was estimated how the noise grows with the signal.
    """

    def __init__(
        self, held_out: HeldOut, before: Terms, level: float, is_rough: bool = False
    ) -> None:
        self._held_out = held_out
        self._before = before
        self._level = level
        self._plausible = plausible_levels(level, _SIGNAL_DOUBT if is_rough else _DOUBT)
        self._mse_before = max(held_out.mse(before, level), _LEAST_ERROR)
        self.rmse_before = held_out.rmse(before, level)

    def doubt(self) -> str | None:
        """Say why the error cannot be estimated, if it cannot, from what the network removes."""
        if abs(self._level - 1) > _LEVEL_OFF:
            return f"what the network removes has {self._level:.2f} times the level of the noise"
        levels = self._held_out.implied_levels(self._before)
        if float(levels.std()) > _UNEVEN * float(levels.mean()):
            return "the noise level varies from place to place, unlike the noise that is assumed"
        if min(self._held_out.mse(self._before, level) for level in self._plausible) <= 0:
            return "the error is smaller than the uncertainty of the noise level"
        return None

    def gain(self, net: nn.Module) -> Gain:
        """Judge a network."""
        after = self._held_out.terms(net)
        rmse = self._held_out.rmse(after, self._level)
        found = [self._gain_at(after, level, rmse) for level in self._plausible]
        return min(found, key=lambda gain: gain.certain)

    def _gain_at(self, after: Terms, level: float, rmse: float) -> Gain:
        before = self._before
        falls = [
            (old - new + 2 * level**2 * (old_slope - new_slope))[0]
            for old, new, old_slope, new_slope in zip(
                before.residual, after.residual, before.divergence, after.divergence, strict=True
            )
        ]
        fall = mean_risk(np.stack(falls))
        return Gain(fall.mse / self._mse_before, fall.error / self._mse_before, rmse)


def plausible_levels(level: float, doubt: float = _DOUBT) -> tuple[float, float]:
    """Return the lowest and the highest plausible level, relative to the estimated one.

    >>> low, high = plausible_levels(1.05)
    >>> round(low, 3), round(high, 3)
    (0.99, 1.06)
    """
    return min(1.0, level) * (1 - doubt), max(1.0, level) * (1 + doubt)
