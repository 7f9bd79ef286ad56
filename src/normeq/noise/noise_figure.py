"""A picture of an image's noise: variance against level with the fit, and the autocorrelation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from normeq.noise.model import NoiseModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LAGS = 5


def noise_figure(model: NoiseModel, blocks: tuple[Floats, Floats, Mask], title: str) -> Figure:
    """Draw what was measured and what was concluded; needs matplotlib.

    Parameters
    ----------
    model
        The noise that was found.
    blocks
        What `normeq.noise.measure_blocks` returns.
    title
        A line above the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    figure.suptitle(f"{title}\n{model.describe()}", fontsize=10)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_variance(left, model, *blocks)
    _draw_correlation(right, model)
    return figure


def _draw_variance(
    axes: Axes, model: NoiseModel, levels: Floats, variances: Floats, quiet: Mask
) -> None:
    if levels.size:
        axes.plot(levels[~quiet], variances[~quiet], ".", color="0.8", ms=2, label="blocks")
        axes.plot(
            levels[quiet], variances[quiet], ".", color="tab:blue", ms=4, label="quiet blocks"
        )
        axes.set_ylim(0, 1.3 * max(float(np.quantile(variances[quiet], 0.98)), 1e-30))
    line = np.linspace(model.darkest, model.brightest, 100)
    fit, error = model.variance(line), np.array([_variance_error(model, y) for y in line])
    axes.plot(line, fit, color="tab:red", label="gain · level + base")
    axes.fill_between(line, fit - 2 * error, fit + 2 * error, color="tab:red", alpha=0.2, lw=0)
    axes.set(xlabel="level", ylabel="variance of the noise")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _variance_error(model: NoiseModel, level: float) -> float:
    return 2 * model.sigma_error(level) * float(model.sigma(level))


def _draw_correlation(axes: Axes, model: NoiseModel) -> None:
    rho = np.zeros((_LAGS + 1, _LAGS + 1))
    known = np.array(model.correlation.autocorrelation)[: _LAGS + 1, : _LAGS + 1]
    rho[: known.shape[0], : known.shape[1]] = known
    lags = np.arange(_LAGS + 1)
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.plot(lags, rho[:, 0], "o-", label="down the rows")
    axes.plot(lags, rho[0], "s--", label="across the columns")
    axes.set(xlabel="distance in pixels", ylabel="autocorrelation", ylim=(-0.3, 1.05))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
