"""The preview: what is in view, denoised at once, and again whenever the view changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normeq.errors import NormeqError
from normeq.napari.background import Background
from normeq.napari.layer_view import PlaneView, view_of
from normeq.napari.new_layers import moved_state
from normeq.napari.temporary_layer import TemporaryLayer

if TYPE_CHECKING:
    from napari.layers import Image
    from napari.viewer import Viewer

    from normeq.napari.layer_image import DenoiseSettings, LayerImage
    from normeq.napari.layer_walk import ViewPart

# Milliseconds between two looks at what is in view.
_PERIOD = 100
# What of a layer's look the preview shares while it is changed.
_LOOK = ("contrast_limits", "colormap", "gamma")


class ShownLayer(NamedTuple):
    """What is to be shown: a layer, its pixels, and how they are denoised."""

    layer: Image
    image: LayerImage
    settings: DenoiseSettings


class LivePreview:
    """Shows a denoised copy of what is in view.

    Parameters
    ----------
    viewer
        The viewer.
    subject
        Returns what is to be shown now; None if there is nothing to show.
    noise
        Called with what was found out about the noise.
    failed
        Called with a sentence if it cannot be shown.
    """

    def __init__(
        self,
        viewer: Viewer,
        subject: Callable[[], ShownLayer | None],
        noise: Callable[[list[str]], object],
        failed: Callable[[str], object],
    ) -> None:
        from qtpy.QtCore import QTimer

        self._viewer, self._subject, self._noise, self._failed = viewer, subject, noise, failed
        self._shown = TemporaryLayer(viewer, "preview")
        self._view: PlaneView | None = None
        self._wanted: tuple[ShownLayer, PlaneView] | None = None
        self._work = Background(self._show, lambda _: None, failed)
        # What is in view is known after the next drawing, of which nothing is told.
        self._clock = QTimer(interval=_PERIOD)
        self._clock.timeout.connect(self._look)

    @property
    def layer(self) -> Image | None:
        """The layer with the preview, if there is one."""
        return self._shown.layer

    @property
    def busy(self) -> bool:
        """Whether parts of it are still missing."""
        return self._work.busy

    def switch(self, on: bool) -> None:
        """Start or end it."""
        if on:
            self._look()
            self._clock.start()
        else:
            self._clock.stop()
            self._work.stop()
            self._shown.remove()
            self._view = self._wanted = None

    def _look(self) -> None:
        """Start to compute what is in view if that is new."""
        subject = self._subject()
        if subject is None:
            return
        try:
            view = view_of(self._viewer, subject.layer, subject.image)
        except NormeqError as error:
            self._failed(str(error))
            return
        if view is not None and (subject, view) != self._wanted:
            self._wanted = (subject, view)
            self._work.start(partial(_parts, subject, view))

    def _show(self, shown: tuple[ShownLayer, PlaneView, ViewPart]) -> None:
        subject, view, part = shown
        if subject.layer not in self._viewer.layers:
            return
        layer, image = subject.layer, subject.image
        if self._view is not view or self.layer is None:
            state = moved_state(layer, view.offset(image), {"role": "preview"})
            blending = {"blending": "translucent", "opacity": 1.0, "multiscale": False}
            data = _lifted(part.pixels, image).copy()
            self._shown.show(data, layer, state | blending)
            self._view = view
            self._share_look(layer)
            self._noise(part.noise)
            return
        rows = slice(part.rows.start - view.rows.start, part.rows.stop - view.rows.start)
        columns = slice(
            part.columns.start - view.columns.start, part.columns.stop - view.columns.start
        )
        place: list[Any] = [0] * len(image.axes)
        place[image.plane_axes[0]], place[image.plane_axes[1]] = rows, columns
        if image.rgb:
            place[-1] = slice(None)
        flipped = image.plane_axes[0] > image.plane_axes[1]
        self.layer.data[tuple(place)] = np.swapaxes(part.pixels, 0, 1) if flipped else part.pixels
        self.layer.refresh()

    def _share_look(self, layer: Image) -> None:
        """Let the preview follow the contrast and colours of its layer."""
        shown = self.layer

        def follow() -> None:
            if shown is not None and shown is self.layer:
                for name in _LOOK:
                    setattr(shown, name, getattr(layer, name))

        for name in _LOOK:
            getattr(layer.events, name).connect(follow)


def _parts(
    subject: ShownLayer, view: PlaneView, stop: threading.Event
) -> Generator[tuple[ShownLayer, PlaneView, ViewPart], None, None]:
    from normeq.napari.layer_walk import walk_of

    walk = walk_of(subject.image, subject.settings)
    for part in walk.view(view.place, view.rows, view.columns, stop):
        yield subject, view, part


def _lifted(pixels: Any, image: LayerImage) -> Any:
    """Give ``(rows, columns)``, or with colours, the axes of the layer."""
    rows, columns = image.plane_axes
    pixels = np.swapaxes(pixels, 0, 1) if rows > columns else pixels
    return np.expand_dims(pixels, tuple(image.leading_axes))
