"""The pictures of napari.md: the plugin in a viewer, on its own sample.

xvfb-run -s "-screen 0 1600x1000x24" python docs/napari_screenshots.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("LIBGL_ALWAYS_SOFTWARE", "1")

import napari

FIGURES = Path(__file__).parent / "figures"
SIZE = (1280, 760)


def main() -> None:
    """Denoise the sample and take pictures: side by side, and with the filter of a pixel."""
    viewer = napari.Viewer()
    viewer.window.resize(*SIZE)
    viewer.open_sample("normeq", "cells")
    _, widget = viewer.window.add_plugin_dock_widget("normeq")
    wait(lambda: len(widget.model.choices) > 1)
    widget.denoise.native.click()
    wait(lambda: widget.denoise.enabled)
    viewer.canvas.grid.enabled = True
    viewer.reset_view(margin=0.02)
    take(viewer, "napari.png")

    viewer.canvas.grid.enabled = False
    viewer.layers[-1].visible = False
    place = (27.0, 30.6)  # on the edge of a cell
    viewer.scene.camera.center = place
    viewer.scene.camera.zoom = 60
    widget.filters.value = True
    widget._filters.look_at((*viewer.dims.point[:2], *place))
    wait(lambda: widget._filters.layer is not None)
    take(viewer, "napari-filter.png")
    viewer.close()


def wait(condition: Callable[[], object]) -> None:
    """Let the viewer run until something is true."""
    from qtpy.QtWidgets import QApplication

    while not condition():
        QApplication.processEvents()
        time.sleep(0.01)


def take(viewer: napari.Viewer, name: str) -> None:
    """Take a picture once everything is drawn."""
    end = time.monotonic() + 2
    wait(lambda: time.monotonic() > end)
    viewer.screenshot(FIGURES / name, canvas_only=False, flash=False)


if __name__ == "__main__":
    main()
