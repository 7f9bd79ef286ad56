"""The filter view: what the denoised pixel under the mouse is made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normeq.errors import NormeqError
from normeq.napari.background import Background
from normeq.napari.layer_view import PlaneView, pixel_of
from normeq.napari.live_preview import ShownLayer
from normeq.napari.new_layers import moved_state
from normeq.napari.temporary_layer import TemporaryLayer

if TYPE_CHECKING:
    from napari.layers import Image
    from napari.viewer import Viewer

    from normeq.explanation import AdaptiveFilter

# Negative weights are blue, positive ones red, and the image is seen where there are none.
_COLOURS = [[0.1, 0.3, 1.0, 1.0], [0.1, 0.3, 1.0, 0.0], [1.0, 0.1, 0.0, 0.0], [1.0, 0.1, 0.0, 1.0]]
_CONTROLS = [0.0, 0.5, 0.5, 1.0]
# The strongest colour is for this quantile of the absolute weights that are shown.
_STRONGEST = 0.99


class FilterView:
    """Shows the weights with which pixels enter the denoised pixel under the mouse.

    Parameters
    ----------
    viewer
        The viewer.
    subject
        Returns what is denoised, and how; None if nothing is.
    described
        Called with the numbers of the filter, a line for each.
    failed
        Called with a sentence if it cannot be shown.
    """

    def __init__(
        self,
        viewer: Viewer,
        subject: Callable[[], ShownLayer | None],
        described: Callable[[str], object],
        failed: Callable[[str], object],
    ) -> None:
        self._viewer, self._subject = viewer, subject
        self._described, self._failed = described, failed
        self._shown = TemporaryLayer(viewer, "filter")
        self._work = Background(self._show, lambda _: None, failed)
        self._last: PlaneView | None = None

    @property
    def layer(self) -> Image | None:
        """The layer with the filter, if there is one."""
        return self._shown.layer

    def switch(self, on: bool) -> None:
        """Start or end it."""
        callbacks = self._viewer.mouse_move_callbacks
        if on and self._moved not in callbacks:
            callbacks.append(self._moved)
        elif not on:
            if self._moved in callbacks:
                callbacks.remove(self._moved)
            self._work.stop()
            self._shown.remove()
            self._last = None

    def _moved(self, viewer: Viewer, event: Any) -> None:
        self.look_at(event.position)

    def look_at(self, position: Any) -> None:
        """Show the filter of the pixel at a position of the world."""
        subject = self._subject()
        if subject is None:
            return
        try:
            pixel = pixel_of(self._viewer, subject.layer, subject.image, position)
        except NormeqError as error:
            self._failed(str(error))
            return
        if pixel is not None and pixel != self._last:
            self._last = pixel
            self._work.start(partial(_filter, subject, pixel))

    def _show(self, found: tuple[ShownLayer, PlaneView, AdaptiveFilter]) -> None:
        from napari.utils import Colormap

        from normeq.explanation import cut_out, describe, shown_square

        subject, pixel, each = found
        if subject.layer not in self._viewer.layers:
            return
        square = shown_square(each)
        weights = cut_out(each.weights, each, square)
        weights = weights.sum(0) if weights.ndim == 3 else weights
        reach = float(np.quantile(np.abs(weights), _STRONGEST)) or 1.0
        image = subject.image
        flipped = image.plane_axes[0] > image.plane_axes[1]
        data = np.expand_dims(weights.T if flipped else weights, tuple(image.leading_axes))
        state = moved_state(
            subject.layer, PlaneView(pixel.place, *square).offset(image), {"role": "filter"}
        )
        state |= {
            "colormap": Colormap(_COLOURS, name="normeq weights", controls=_CONTROLS),
            "contrast_limits": (-reach, reach),
            "gamma": 1.0,
            "blending": "translucent",
            "opacity": 0.8,
            "rgb": False,
            "interpolation2d": "nearest",
        }
        above = self._viewer.layers[-1]
        self._shown.show(data.astype(np.float32), above, state)
        self._described(describe(each))


def _filter(
    subject: ShownLayer, pixel: PlaneView, stop: threading.Event
) -> Generator[tuple[ShownLayer, PlaneView, AdaptiveFilter], None, None]:
    from normeq.napari.layer_walk import walk_of

    at = pixel.rows.start, pixel.columns.start
    yield subject, pixel, walk_of(subject.image, subject.settings).filter_at(pixel.place, at)
