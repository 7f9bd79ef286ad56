"""Pictures of adaptive filters, each beside the pixels that it weighs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normeq.explanation.adaptive_filter import AdaptiveFilter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# The square that is shown holds this share of the squared weights, by which noise is left.
_SHARE = 0.97
_SMALLEST_RADIUS = 7
# The strongest colour is for this quantile of the absolute weights: the pixel's own may be far
# above all others.
_STRONGEST = 0.99
# Grey values cover all but this share of the pixels at either end.
_CUT = 0.005


def filter_figure(filters: Sequence[AdaptiveFilter], title: str = "") -> Figure:
    """Draw filters, a row for each: the image around the pixel, its weights, the numbers.

    Positive weights are red, negative ones blue; the strongest may lie beyond the colours. Needs
    matplotlib.

    Parameters
    ----------
    filters
        At least one.
    title
        A line above the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.8, 2.9 * len(filters) + 0.4 * bool(title)), layout="constrained")
    if title:
        figure.suptitle(title, fontsize=10)
    rows = figure.subplots(len(filters), 4, squeeze=False, width_ratios=(1, 1, 0.05, 0.75))
    for (left, middle, bar, right), each in zip(rows, filters, strict=True):
        draw_pixels(left, each)
        colours = draw_weights(middle, each)
        figure.colorbar(colours, cax=bar, extend="both").ax.tick_params(labelsize=7)
        right.set_axis_off()
        right.text(0.0, 0.5, describe(each), va="center", fontsize=9, transform=right.transAxes)
    return figure


def describe(each: AdaptiveFilter) -> str:
    """Return the numbers of a filter, a line for each."""
    lines = [
        f"row {each.at[0]}, column {each.at[1]}",
        f"denoised value  {each.value:.5g}",
        f"sum of weights  {each.sum:.4f}",
        f"pixels averaged  {each.effective_pixels:.3g}",
    ]
    if each.noise_left is not None:
        lines.append(f"noise left  {each.noise_left:.3g}")
    return "\n".join(lines)


def draw_pixels(axes: Axes, each: AdaptiveFilter) -> None:
    """Draw the image around the pixel, as far as its filter is shown."""
    view = shown_square(each)
    shown = cut_out(each.pixels, each, view)
    low, high = np.quantile(shown, (_CUT, 1 - _CUT))
    if shown.ndim == 3:
        scaled = np.clip((np.moveaxis(shown, 0, -1) - low) / max(high - low, 1e-30), 0, 1)
        axes.imshow(scaled, extent=_extent(view))
    else:
        axes.imshow(shown, cmap="gray", vmin=low, vmax=high, extent=_extent(view))
    _mark(axes, each)


def draw_weights(axes: Axes, each: AdaptiveFilter) -> AxesImage:
    """Draw the weights over the same pixels, summed over channels; return what has the colours."""
    view = shown_square(each)
    shown = cut_out(each.weights, each, view)
    shown = shown.sum(0) if shown.ndim == 3 else shown
    limit = float(np.quantile(np.abs(shown), _STRONGEST)) or 1.0
    drawn = axes.imshow(shown, cmap="RdBu_r", vmin=-limit, vmax=limit, extent=_extent(view))
    _mark(axes, each)
    return drawn


def _mark(axes: Axes, each: AdaptiveFilter) -> None:
    axes.plot(each.at[1], each.at[0], "s", mfc="none", mec="lime", ms=6)
    axes.tick_params(labelsize=7)


def shown_square(each: AdaptiveFilter) -> tuple[slice, slice]:
    """Return the square around the pixel that holds nearly all of its weights."""
    weights = np.square(each.weights)
    weights = weights.sum(0) if weights.ndim == 3 else weights
    rows, columns = (np.arange(part.start, part.stop) for part in each.window)
    distance = np.maximum(np.abs(rows - each.at[0])[:, None], np.abs(columns - each.at[1])[None, :])
    by_distance = np.bincount(distance.ravel(), weights.ravel())
    enough = np.cumsum(by_distance) >= _SHARE * by_distance.sum()
    radius = max(int(np.argmax(enough)), _SMALLEST_RADIUS)
    top, left = (
        slice(max(place - radius, part.start), min(place + radius + 1, part.stop))
        for place, part in zip(each.at, each.window, strict=True)
    )
    return top, left


def cut_out(
    values: NDArray[np.float64], each: AdaptiveFilter, view: tuple[slice, slice]
) -> NDArray[Any]:
    """Return the part of a filter's weights or pixels that lies in some rows and columns."""
    rows, columns = (
        slice(shown.start - part.start, shown.stop - part.start)
        for shown, part in zip(view, each.window, strict=True)
    )
    return values[..., rows, columns]


def _extent(view: tuple[slice, slice]) -> tuple[float, float, float, float]:
    rows, columns = view
    return columns.start - 0.5, columns.stop - 0.5, rows.stop - 0.5, rows.start - 0.5
