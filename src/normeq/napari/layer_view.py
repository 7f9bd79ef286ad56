"""Which pixels of a layer are in view, and which is under the mouse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normeq.errors import UsageError

if TYPE_CHECKING:
    from napari.layers import Image
    from napari.viewer import Viewer

    from normeq.napari.layer_image import LayerImage

#: Pixels of a view, at most; of a larger one the middle is taken.
MOST_SEEN = 2**22


class PlaneView(NamedTuple):
    """A part of a plane: where it is along the axes with sliders, its rows and columns."""

    place: tuple[int, ...]
    rows: slice
    columns: slice

    def offset(self, image: LayerImage) -> list[int]:
        """Return its first pixel, one number for each axis of the layer."""
        numbers = dict(zip(image.leading_axes, self.place, strict=True))
        numbers |= dict(zip(image.plane_axes, (self.rows.start, self.columns.start), strict=True))
        return [numbers[axis] for axis in sorted(numbers)]


def view_of(viewer: Viewer, layer: Image, image: LayerImage) -> PlaneView | None:
    """Return what is in view of a layer, at its finest resolution; None if it is out of view."""
    _check_plane(viewer, layer, image)
    place = _place(layer, image, viewer.dims.point)
    if place is None:
        return None
    factors = layer.downsample_factors[layer.data_level] if layer.multiscale else 1
    corners = np.asarray(layer.corner_pixels) * factors
    spans = []
    for axis in image.plane_axes:
        start, stop = math.floor(corners[0, axis]), math.ceil(corners[1, axis]) + 1
        spans.append((max(0, start), min(int(image.data.shape[axis]), stop)))
    if any(stop - start < 2 for start, stop in spans):
        return None
    rows, columns = middle_of(spans, MOST_SEEN)
    return PlaneView(place, rows, columns)


def pixel_of(
    viewer: Viewer, layer: Image, image: LayerImage, position: Sequence[float]
) -> PlaneView | None:
    """Return the pixel at a position of the world; None if it is outside the layer."""
    _check_plane(viewer, layer, image)
    place = _place(layer, image, position)
    row, column = (round(layer.world_to_data(position)[axis]) for axis in image.plane_axes)
    height, width = (image.data.shape[axis] for axis in image.plane_axes)
    if place is None or not (0 <= row < height and 0 <= column < width):
        return None
    return PlaneView(place, slice(row, row + 1), slice(column, column + 1))


def middle_of(spans: Sequence[tuple[int, int]], most: int) -> tuple[slice, slice]:
    """Return the middle of a rectangle, with at most `most` pixels.

    >>> middle_of([(0, 100), (0, 400)], 10_000)
    (slice(25, 75, None), slice(100, 300, None))
    """
    (top, bottom), (left, right) = spans
    share = min(1.0, math.sqrt(most / ((bottom - top) * (right - left))))
    height, width = int((bottom - top) * share), int((right - left) * share)
    row, column = (top + bottom - height) // 2, (left + right - width) // 2
    return slice(row, row + height), slice(column, column + width)


def _check_plane(viewer: Viewer, layer: Image, image: LayerImage) -> None:
    """Refuse a view that does not show rows and columns of the layer."""
    shift = viewer.dims.ndim - layer.ndim
    shown = {axis - shift for axis in viewer.dims.displayed}
    if viewer.dims.ndisplay != 2 or shown != set(image.plane_axes):
        raise UsageError(
            "the preview shows planes of rows and columns, and the viewer shows other axes: switch "
            "it to two dimensions, and show the axes Y and X."
        )


def _place(layer: Image, image: LayerImage, position: Sequence[float]) -> tuple[int, ...] | None:
    """Return where a position is along the axes with sliders, if the layer is there."""
    data = layer.world_to_data(position)
    place = tuple(round(data[axis]) for axis in image.leading_axes)
    inside = all(
        0 <= index < length for index, length in zip(place, image.leading_shape, strict=True)
    )
    return place if inside else None
