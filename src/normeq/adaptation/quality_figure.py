"""A page about one denoised image: before, after, removed, error bars, and the verdicts."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normeq.adaptation.quality_report import QualityReport
from normeq.adaptation.residual_check import LAGS, ResidualStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from normeq.adaptation.assessment import Assessment

Floats = NDArray[np.float64]

# Side of the square that is shown, in pixels.
_SIDE = 320
# Grey values cover all but this share of the pixels at either end.
_CUT = 0.002
# Error bars of few probes are shown as means over squares of this side.
_SMOOTH = 5
_WIDTH = 92


def quality_figure(assessment: Assessment, title: str) -> Figure:
    """Draw what is known of a result; needs matplotlib.

    Parameters
    ----------
    assessment
        What was measured.
    title
        A line above the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 7.6), layout="constrained")
    figure.suptitle(title, fontsize=13)
    grid = figure.add_gridspec(2, 12, height_ratios=(5, 4))
    before, after, rest, left = (
        figure.add_subplot(grid[0, 3 * number : 3 * number + 3]) for number in range(4)
    )
    noisy, clean, std = _shown(assessment)
    low, high = _limits(noisy)
    _image(before, noisy, f"before, {low:.4g} to {high:.4g}", (low, high), "gray")
    _image(after, clean, "after, the same grey scale", (low, high), "gray")
    removed = noisy - clean
    reach = float(np.nanquantile(np.abs(removed), 1 - _CUT)) or 1.0
    _image(rest, removed, f"removed, ±{reach:.3g}", (-reach, reach), "gray")
    top = float(np.nanquantile(std, 1 - _CUT)) or 1.0
    bars = _image(left, std, "error bars: what noise leaves", (0.0, top), "viridis")
    colours = figure.colorbar(bars, ax=left, location="bottom", fraction=0.05, pad=0.02)
    colours.ax.tick_params(labelsize=8)
    _draw_autocorrelation(figure.add_subplot(grid[1, :5]), assessment.residual)
    _write(figure.add_subplot(grid[1, 5:]), assessment.report)
    return figure


def _shown(assessment: Assessment) -> tuple[Floats, Floats, Floats]:
    """Return the middle of the region in physical units: before, after, and error bars."""
    region, gain, offset = assessment.shown, assessment.gain, assessment.offset
    rows, columns = (
        slice(max(0, (extent - _SIDE) // 2), (extent + _SIDE) // 2) for extent in region.noisy.shape
    )
    variance = np.square(region.responses).mean(0)
    std = np.sqrt(np.maximum(ndimage.uniform_filter(variance, _SMOOTH, mode="nearest"), 0.0))
    noisy, clean = (gain * values + offset for values in (region.noisy, region.denoised))
    return noisy[rows, columns], clean[rows, columns], abs(gain) * std[rows, columns]


def _limits(values: Floats) -> tuple[float, float]:
    low, high = (float(limit) for limit in np.nanquantile(values, (_CUT, 1 - _CUT)))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _image(
    axes: Axes, values: Floats, title: str, limits: tuple[float, float], colours: str
) -> Any:
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
    return axes.imshow(
        values, cmap=colours, vmin=limits[0], vmax=limits[1], interpolation="nearest"
    )


def _draw_autocorrelation(axes: Axes, residual: ResidualStatistics) -> None:
    lags = range(LAGS + 1)
    axes.axhline(0.0, color="0.7", lw=0.8)
    axes.plot(lags, residual.down, "o-", color="C0", label="removed, down")
    axes.plot(lags, residual.across, "s-", color="C1", label="removed, across")
    axes.plot(lags, residual.noise_down, "--", color="C0", alpha=0.6, label="noise, down")
    axes.plot(lags, residual.noise_across, ":", color="C1", alpha=0.8, label="noise, across")
    axes.set(xlabel="distance in pixels", xticks=list(lags), ylim=(-0.65, 1.05))
    axes.set_title("autocorrelation", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper right")


def _write(axes: Axes, report: QualityReport) -> None:
    """Write the figures and the verdicts, warnings in colour."""
    axes.set_axis_off()
    error = (
        f"estimated RMSE {report.rmse:.3g} (90 % interval {report.low:.3g} to {report.high:.3g})\n"
        f"PSNR {report.psnr:.1f} dB ({report.psnr_low:.1f} to {report.psnr_high:.1f})\n"
        f"noise before {report.sigma:.3g}, left {report.noise_left:.3g}"
    )
    axes.text(0.0, 1.0, error, va="top", fontsize=11, transform=axes.transAxes, linespacing=1.5)
    notes = [(line, "tab:red") for line in report.warnings]
    if not report.is_known:
        unknown = "The quality cannot be told: the noise level is not known well enough."
        notes.insert(0, (unknown, "tab:red"))
    if not report.warnings:
        notes.append(("What was removed looks like the noise of the image.", "tab:green"))
    place = 0.6
    for note, colour in notes:
        text = textwrap.fill(note, _WIDTH)
        axes.text(0.0, place, text, va="top", color=colour, transform=axes.transAxes)
        place -= 0.065 * (1 + text.count("\n")) + 0.05
