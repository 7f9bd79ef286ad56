"""The fit of a noise model to the blocks of an image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from normeq.noise import spectra
from normeq.noise.block_statistics import blocks_of
from normeq.noise.correlation import INDEPENDENT, Correlation
from normeq.noise.defects import constant, smallest_step, without_outliers
from normeq.noise.model import NoiseModel
from normeq.noise.regression import Line, fit_line, level_bins

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FEWEST_BLOCKS = 16
# The correlation is measured in this share of the blocks, the quietest; the level in the
# quieter blocks of each brightness.
_QUIETEST = 0.02
_FEWEST_QUIET = 40
_QUIET_AT_LEVEL = 0.05
_FEWEST_AT_LEVELS = 50
_BLOCKS_A_LEVEL = 128
_ROUNDS = 3
# How much each frequency counts in the choice of quiet blocks. The correlation is measured at all
# of them: at the lowest, haze and gradients look like it, at the highest, sharp texture passes for
# white noise, and the many high ones must not drown the few low ones.
_QUIET_AT_LOW = np.where(spectra.COSINE_INNER & (spectra.COSINE_FREQUENCY < 0.6), 1.0, 0.0)
_QUIET_EVERYWHERE = np.where(
    spectra.COSINE_INNER, 1.0 / np.maximum(spectra.COSINE_FREQUENCY, 1e-9), 0.0
)
# The level is measured where noise dominates: a coefficient with noise power s counts as
# (s / (s + texture))². Texture behind optics falls steeply with frequency, faster than correlated
# noise, which then dominates at high ones; that of a sharp photograph falls more slowly, and such
# noise dominates at low ones. White noise dominates at the highest over either.
_STEEP_TEXTURE = (0.7 / np.maximum(spectra.FOURIER_FREQUENCY, 1e-9)) ** 8 + 0.2
_FLAT_TEXTURE = np.ones_like(_STEEP_TEXTURE)
# Correlated noise is not measured where it has less than this share of the power of white noise:
# what is found there, and passes for its spectrum, may be all texture.
_LEAST_POWER = 0.02
# Most of the variance of correlated noise that white noise may explain at the highest frequencies.
# Under blurs of 0.5 pixels it is 0.4 to 0.6, of 0.8 pixels 0.1. White noise under texture has 0.3
# and more, and a correlation that falls slowly from lag to lag; that of noise behind a smoothing
# filter falls faster and faster (measured on photographs).
_MOST_WHITE = 0.65
_MOST_WHITE_IF_SLOW = 0.3
_MOST_WHITE_IF_SLOWER = 0.1
_SLOW = 0.38
# Ratio of the levels of noise in the brightest and darkest parts from which a cautious estimate
# believes in a slope. Less costs a denoiser little, and texture often looks like it.
_LEAST_CONTRAST = 2.0
# A slope or correlation is believed if it is this many standard errors from zero.
_SIGNIFICANT = 2.5
# Texture that is left may differ between dark and bright by this share of the variance.
_TEXTURE_LEFT = 0.06
# Least variance at the darkest level, as a share of that at the mean.
_LEAST_VARIANCE = 1e-3
# Levels of the darkest and of the brightest blocks, as shares of all.
_RANGE = (0.01, 0.99)


class NoiseFit:
    """The noise of some regions of an image.

    Parameters
    ----------
    planes
        The regions, NaN where a pixel has no value.
    values
        Their pixels that have one.
    """

    def __init__(self, planes: list[Floats], values: Floats) -> None:
        self._planes = [without_outliers(plane) for plane in planes]
        self._values = values
        self._step = smallest_step(values)
        self._blocks = blocks_of(self._planes, values)

    @property
    def levels(self) -> Floats:
        """The level of each block."""
        return self._blocks.levels

    def model(self, signal_dependent: bool | None, cautious: bool) -> NoiseModel:
        """Return the noise model; see `normeq.noise.estimate_noise`."""
        if len(self._blocks) < _FEWEST_BLOCKS:
            return self._model_of_differences()
        white = np.zeros((spectra.REACH + 1, spectra.REACH + 1))
        white[0, 0] = 1.0
        sloped = signal_dependent is not False
        rho, line = white, self._line(white, sloped)
        white_line = line
        for _ in range(_ROUNDS):
            rho, error = self._autocorrelation(rho, line)
            line = self._line(rho, sloped)
        near = max(abs(rho[1, 0]), abs(rho[0, 1]), abs(rho[1, 1]))
        correlation = Correlation(tuple(tuple(float(r) for r in row) for row in rho), error)
        white_share = white_line.height / line.height if line.height > 0 else 1.0
        may_be_texture = cautious and _may_be_texture(rho, white_share)
        if near < max(INDEPENDENT, _SIGNIFICANT * error) or may_be_texture:
            correlation = Correlation(error=error)
            rho, line = white, white_line
        if sloped and not line.slope > (0.0 if signal_dependent else self._doubt(line, cautious)):
            # Noise of one level is measured best in the quietest blocks of all.
            grows = line.slope > self._doubt(line, cautious=False)
            line = self._line(rho, sloped=False, at_each_level=grows)
        return self._model(line, correlation)

    def _doubt(self, line: Line, cautious: bool) -> float:
        """Return the slope that chance, or texture at some levels, could well produce."""
        darkest, brightest = np.quantile(self._blocks.levels, _RANGE)
        extent = max(brightest - darkest, np.finfo(float).tiny)
        texture = _TEXTURE_LEFT * line.height / extent
        doubt = float(_SIGNIFICANT * np.hypot(line.covariance[0] ** 0.5, texture))
        if not cautious:
            return doubt
        weakest = (_LEAST_CONTRAST**2 - 1) * max(float(line.at(darkest)), 0.0) / extent
        return float(max(doubt, weakest))

    def _line(self, rho: Floats, sloped: bool, at_each_level: bool = True) -> Line:
        """Fit the variance, measured at the frequencies of blocks that hold least texture."""
        return self._line_and_energies(rho, sloped, at_each_level)[0]

    def energies(self, rho: Floats) -> Floats:
        """Return the variance of each block, at the frequencies that hold least texture."""
        energies: Floats = self._line_and_energies(rho, sloped=True)[1].mean(1)
        return energies

    def _line_and_energies(
        self, rho: Floats, sloped: bool, at_each_level: bool = True
    ) -> tuple[Line, Floats]:
        """Fit a line where steep or flat texture is weak: the lower one, as texture only adds."""
        chosen = self._quiet_halves(rho, at_each_level)
        steep = self._fit_to(chosen, rho, _STEEP_TEXTURE, sloped)
        if np.count_nonzero(rho) == 1:
            return steep
        flat = self._fit_to(chosen, rho, _FLAT_TEXTURE, sloped)
        middle = float(np.mean(np.quantile(self._blocks.levels, _RANGE)))
        # By more than its error: of two lines through nothing but noise, one is lower by chance.
        return flat if flat[0].upper_at(middle) < steep[0].at(middle) else steep

    def _fit_to(
        self, chosen: Mask, rho: Floats, texture: Floats, sloped: bool
    ) -> tuple[Line, Floats]:
        """Fit a line to chosen halves of blocks; return it and the energies of all halves."""
        energies, freedom = self._energies_of_halves(rho, texture)
        blocks, halves = np.nonzero(chosen)
        line = fit_line(
            self._blocks.levels[blocks],
            energies[blocks, halves],
            self._blocks.groups[blocks],
            freedom=freedom,
            tail_freedom=spectra.PIXELS,
            sloped=sloped,
        )
        return line, energies

    def quiet_at_each_level(self, rho: Floats) -> Mask:
        """Choose the blocks with the least energy at low frequencies."""
        first, second = self._quiet_halves(rho).T
        quiet: Mask = first | second
        return quiet

    def _energies_of_halves(self, rho: Floats, texture: Floats) -> tuple[Floats, float]:
        """Return the variance of the halves of each block, and their degrees of freedom."""
        halves = spectra.expected_fourier(rho)
        expected = np.maximum(halves.mean(0), 1e-3)
        # A coefficient of the highest frequencies may lie in one half alone.
        used = spectra.FOURIER_INNER & (halves > 0.1 * expected).all(0)
        strongest = expected[used].max(initial=0.0)
        used &= expected >= _LEAST_POWER * min(1.0, strongest)
        weights = np.where(used, (expected / (expected + texture)) ** 2, 0.0)
        counted = weights * spectra.MULTIPLICITY
        scales = counted / np.maximum(halves, 1e-3) / counted.sum()
        energies = np.einsum("nhc,hc->nh", self._blocks.fourier, scales)
        return energies, spectra.degrees_of_freedom(weights) / 2

    def _quiet_halves(self, rho: Floats, at_each_level: bool = True) -> Mask:
        """Choose, for each half, blocks whose other half has little at low frequencies.

        Of each level, so that the variance can be compared between them, or of all.
        """
        quiet = np.zeros((len(self._blocks), 2), bool)
        share = np.clip(_FEWEST_AT_LEVELS / len(self._blocks), _QUIET_AT_LEVEL, 1.0)
        everywhere = [np.arange(len(self._blocks))]
        bins = level_bins(self._blocks.levels, _BLOCKS_A_LEVEL) if at_each_level else everywhere
        for half in (0, 1):
            energies = self._whitened(rho, 1 - half, _QUIET_AT_LOW)
            for part in bins:
                quiet[part[energies[part] <= np.quantile(energies[part], share)], half] = True
        return quiet

    def _whitened(self, rho: Floats, half: int, weights: Floats) -> Floats:
        """Return the weighted energy of one half of each block, 1 a coefficient for unit noise."""
        chosen = np.equal(spectra.COSINE_HALF, half) & (weights > 0)
        expected = np.maximum(spectra.expected_cosine(rho), 0.01)[chosen]
        energies: Floats = self._blocks.cosine[:, chosen] @ (weights[chosen] / expected)
        return energies

    def _autocorrelation(self, rho: Floats, line: Line) -> tuple[Floats, float]:
        """Measure the correlation in the quietest blocks, and its error.

        Each half is measured in the blocks where the other is small: blocks chosen by what is
        measured in them would be too quiet.
        """
        blocks = self._blocks
        variance = np.maximum(line.at(blocks.levels), _LEAST_VARIANCE * abs(line.height))
        count = min(len(blocks), max(_FEWEST_QUIET, int(_QUIETEST * len(blocks))))
        power = np.empty(spectra.COSINE_HALF.size)
        for half in (0, 1):
            measured = np.equal(spectra.COSINE_HALF, half)
            energies = self._whitened(rho, 1 - half, _QUIET_EVERYWHERE) / variance
            quiet = np.argsort(energies, kind="stable")[:count]
            power[measured] = (blocks.cosine[quiet] / variance[quiet, None]).mean(0)[measured]
        weights = np.where(
            spectra.COSINE_INNER, np.minimum(1.0, (spectra.COSINE_FREQUENCY / 0.25) ** 2), 0.0
        )
        least = 0.02 * np.median(power[spectra.COSINE_INNER])
        covariance = spectra.autocovariance(power, weights / np.maximum(power, least) ** 2)
        if not covariance[0, 0] > 0:
            return rho, 1.0
        return covariance / covariance[0, 0], float((count * spectra.STEP**2) ** -0.5)

    def _model(self, line: Line, correlation: Correlation) -> NoiseModel:
        """Turn the line into a model whose variance is positive at every level."""
        levels = self._blocks.levels
        mean = float(self._values.mean())
        darkest = min(float(np.quantile(levels, _RANGE[0])), mean)
        brightest = max(float(np.quantile(levels, _RANGE[1])), mean)
        least = max(_LEAST_VARIANCE * line.height, self._step**2 / 12)
        slope, height = line.slope, max(line.height, least)
        if slope > 0 and height - slope * (line.center - darkest) < least:
            slope = (height - least) / (line.center - darkest)
        of_slope, joint, of_height = line.covariance
        return NoiseModel(
            gain=slope,
            base=height - slope * line.center,
            darkest=darkest,
            mean=mean,
            brightest=brightest,
            correlation=correlation,
            covariance=(
                of_slope,
                joint - line.center * of_slope,
                of_height - 2 * line.center * joint + line.center**2 * of_slope,
            ),
        )

    def _model_of_differences(self) -> NoiseModel:
        """Return one level for an image that is too small or too constant for blocks."""
        squares = [_second_differences(plane) for plane in self._planes]
        found = np.concatenate(squares)
        variance = float(found.mean()) if found.size else 0.0
        error = variance * (2.0 / found.size) ** 0.5 if found.size else 0.0
        mean = float(self._values.mean())
        model = NoiseModel.uniform(variance**0.5, level=mean)
        return replace(model, covariance=(0.0, 0.0, error**2), correlation=Correlation(error=1.0))


def _may_be_texture(rho: Floats, white_share: float) -> bool:
    """Tell whether white noise under texture explains a correlation as well."""
    near, next_to_it = (rho[0, lag] + rho[lag, 0] for lag in (1, 2))
    if next_to_it > near**2 / 2:
        return white_share > _MOST_WHITE_IF_SLOWER
    return white_share > (_MOST_WHITE_IF_SLOW if next_to_it > _SLOW * near else _MOST_WHITE)


def _second_differences(plane: Floats) -> Floats:
    """Return squared second differences along both axes, 1 on average for unit white noise."""
    down = plane[:-2] - 2 * plane[1:-1] + plane[2:]
    both = down[:, :-2] - 2 * down[:, 1:-1] + down[:, 2:]
    squares: Floats = (both[~constant(plane)[1:-1, 1:-1]] / 6.0) ** 2
    return squares[np.isfinite(squares)]
