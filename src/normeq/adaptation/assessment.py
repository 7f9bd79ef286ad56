"""How good a denoised image is, without ground truth: its error, and whether noise was removed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from normeq.adaptation.error_interval import ErrorSums, LevelError, error_interval
from normeq.adaptation.quality_report import QualityReport
from normeq.adaptation.residual_check import ResidualStatistics, residual_statistics, together
from normeq.denoising.arrays import walk_over
from normeq.denoising.bands import Walk
from normeq.denoising.ensemble import EnsembleSize
from normeq.denoising.error_bars import SMALL_STEP, ErrorBars
from normeq.denoising.file_options import FileOptions
from normeq.denoising.mosaics import start_walk
from normeq.denoising.noise_options import NoiseName, NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.probing import ProbedRegion, probed_regions
from normeq.denoising.progress import Progress, progress_report
from normeq.denoising.walk_options import NanPolicy, WalkOptions
from normeq.errors import InputError
from normeq.images import open_image
from normeq.images.bayer import Bayer
from normeq.noise import NoiseModel
from normeq.noise.sampling import sampled_regions

#: How many probes a report is made from, unless the caller says otherwise.
PROBES = 4


def quality(
    image: Any,
    sigma: ArrayLike | None = None,
    *,
    noise: NoiseName | NoiseModel = "auto",
    strength: float = 1.0,
    each_plane: bool = False,
    model: str | Callable[..., Any] = "default",
    ensemble: EnsembleSize = 1,
    axes: str | None = None,
    channel_axis: int | None = None,
    bayer: Bayer | None = None,
    tile: int | None = None,
    device: str = "auto",
    nan: NanPolicy = "raise",
    value_range: tuple[float, float] | None = None,
    probes: int = PROBES,
    progress: Progress = False,
    cancel: threading.Event | None = None,
) -> QualityReport:
    """Say how good ``denoise(image)`` is, from the noisy image alone.

    ``quality(λ·y + μ).rmse = λ · quality(y).rmse``; PSNR and findings are the same. Of a large
    image a million pixels are looked at, chosen by its shape alone.

    Examples
    --------
    >>> import numpy as np, normeq
    >>> from normeq.noise import draw
    >>> scene = 100.0 * np.hypot(*np.indices((64, 64))) / 64
    >>> noisy = scene + draw("gaussian", scene.shape, 10.0, np.random.default_rng(0))
    >>> report = normeq.quality(noisy, 10.0, probes=1)
    >>> error = np.sqrt(np.mean((normeq.denoise(noisy, 10.0) - scene) ** 2))
    >>> bool(report.low / 1.2 < error < 1.2 * report.high)
    True

    Parameters
    ----------
    image
        See `normeq.denoise`; not a lazy one.
    sigma, noise, strength, each_plane, model, ensemble, axes, channel_axis, bayer, tile, device
        See `normeq.denoise`. A stated noise counts as known exactly.
    nan, value_range
        See `normeq.denoise`.
    probes
        How many probes the estimate is made from; each takes as much time as denoising.
    progress, cancel
        See `normeq.denoise`.
    """
    choice = Choice(model, device, False, value_range, ensemble)
    options = NoiseOptions(sigma, noise, strength, each_plane)
    how = WalkOptions(nan, None, tile, value_range, bayer, cancel)
    walk = walk_over(image, choice, options, how, axes=axes, channel_axis=channel_axis)
    return assess(walk, options, probes, progress).report


class Assessment(NamedTuple):
    """A report, what it is made from, and the region that a picture shows, in stored units."""

    report: QualityReport
    sums: ErrorSums
    level: LevelError
    residual: ResidualStatistics
    shown: ProbedRegion
    gain: float
    offset: float


def assess_file(
    path: Path, choice: Choice, options: FileOptions, probes: int = PROBES
) -> Assessment:
    """Say how good the denoised copy of a file is; of a file with several images, the first.

    Parameters
    ----------
    path
        The noisy image.
    choice, options
        What denoises it, and how.
    probes
        See `quality`.
    """
    with open_image(path, options.axes, options.max_pixels, options.part) as source:
        walk = start_walk(source, choice, options.noise, options.walk)
        return assess(walk, options.noise, probes)


def assess(
    walk: Walk, options: NoiseOptions, probes: int = PROBES, progress: Progress = False
) -> Assessment:
    """Say how good the result of a walk is.

    Parameters
    ----------
    walk
        How an image is denoised.
    options
        What the caller says about its noise.
    probes, progress
        See `quality`.
    """
    bars = ErrorBars.of(walk, options, probes, SMALL_STEP)
    sums, residuals, seen = ErrorSums(), [], _ResultRange()
    source = walk.source
    count = len(sampled_regions(source.frames, source.height, source.width))
    planes = sum(map(len, walk.groups))
    with progress_report(count * planes, progress) as report:
        for region in probed_regions(walk, bars):
            if np.isfinite(region.denoised).any():
                model = bars.noise[region.place].model
                sums += ErrorSums.of(region, model.correlation)
                residuals.append(residual_statistics(region, model))
                seen.add(region)
            report(1)
    if not residuals:
        raise InputError("no pixel of the image has a value, so there is nothing to judge.")
    gain = abs(source.gain)
    level = _level_error(bars, options, walk.denoiser.channels > 1)
    interval = error_interval(sums.scaled(gain), level, walk.denoiser.law != "own")
    residual = together(residuals)
    found = QualityReport.of(
        interval,
        sums.scaled(gain),
        residual,
        value_range=gain * (seen.highest - seen.lowest),
        level_error=level.given(sums.divergence / sums.variance if sums.variance else 0.0)[1],
        told_white=walk.noise.is_white,
        is_stated=not level.estimated,
    )
    return Assessment(
        found, sums.scaled(gain), level, residual, seen.shown, source.gain, source.offset
    )


def _level_error(bars: ErrorBars, options: NoiseOptions, in_color: bool) -> LevelError:
    """Return how well the level of the noise is known: exactly if the caller states it."""
    models = {id(noise.model): noise.model for noise in bars.noise.values()}.values()
    stated = options.sigma is not None and not isinstance(options.sigma, str)
    estimated = not stated and not isinstance(options.noise, NoiseModel)
    return LevelError(
        max(map(_relative_error, models)),
        estimated,
        any(not model.correlation.is_white for model in models),
        any(not model.is_uniform for model in models),
        in_color,
    )


def _relative_error(model: NoiseModel) -> float:
    """Return the relative standard error of the variance at the mean level."""
    sigma = model.mean_sigma
    return 2 * model.sigma_error(model.mean) / sigma if sigma > 0 else 0.0


class _ResultRange:
    """The range of the result, and the region that a picture shows: the first."""

    shown: ProbedRegion

    def __init__(self) -> None:
        self.lowest, self.highest = np.inf, -np.inf

    def add(self, region: ProbedRegion) -> None:
        if self.lowest > self.highest:
            self.shown = region
        self.lowest = min(self.lowest, float(np.nanmin(region.denoised)))
        self.highest = max(self.highest, float(np.nanmax(region.denoised)))
