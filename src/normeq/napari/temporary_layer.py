"""A layer that we show for a while above another, and take away again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari.layers import Image
    from napari.viewer import Viewer


class TemporaryLayer:
    """At most one layer, which follows what is computed; what is selected stays selected.

    Parameters
    ----------
    viewer
        Where it is shown.
    name
        What it is called.
    """

    def __init__(self, viewer: Viewer, name: str) -> None:
        self._viewer = viewer
        self._name = name
        self.layer: Image | None = None

    def show(self, data: Any, above: Image, state: dict[str, Any]) -> None:
        """Show an array above a layer.

        Parameters
        ----------
        data
            The array.
        above
            The layer that it belongs to.
        state
            Arguments of the new layer.
        """
        from napari.layers import Image

        self.remove()
        layers = self._viewer.layers
        selected = set(layers.selection), layers.selection.active
        self.layer = Image(data, name=self._name, **state)
        layers.insert(layers.index(above) + 1, self.layer)
        layers.selection.clear()
        layers.selection.update(selected[0])
        layers.selection.active = selected[1]

    def remove(self) -> None:
        """Take the layer away, if the user has not."""
        if self.layer is not None and self.layer in self._viewer.layers:
            self._viewer.layers.remove(self.layer)
        self.layer = None
