"""A viewer that all tests of the plugin share, on a display of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.display import running_display

# Importing napari and opening its window warns of what is not ours.
_NOT_OURS = (
    "ignore::pydantic.warnings.PydanticDeprecatedSince20",
    "ignore:viewer.camera is a deprecated attribute:DeprecationWarning",  # newer: scene.camera
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process open the viewer, and let napari warn."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("napari"))
            for warning in _NOT_OURS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Open a viewer with settings of its own."""
    pytest.importorskip("napari", minversion="0.6", reason="napari is not installed")
    os.environ["NAPARI_CONFIG"] = str(tmp_path_factory.mktemp("napari") / "settings.yaml")
    with running_display():
        from napari.viewer import Viewer  # before Qt, after which pydantic cannot be imported

        try:
            import qtpy.QtWidgets
        except (ImportError, RuntimeError) as error:
            pytest.skip(f"Qt cannot be used: {error}")
        assert qtpy.QtWidgets is not None
        viewer = Viewer(show=True)
        yield viewer
        viewer.close()


@pytest.fixture
def viewer(window: Any) -> Iterator[Any]:
    """Return the viewer without layers or widgets."""
    yield window
    window.window.remove_dock_widget("all")
    window.layers.clear()
    window.dims.ndisplay = 2


@pytest.fixture
def wait(window: Any) -> Callable[[Callable[[], object]], None]:
    """Return what lets the viewer run until something is true."""
    from qtpy.QtWidgets import QApplication

    def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it never happened"
            QApplication.processEvents()
            time.sleep(0.005)

    return until


@pytest.fixture
def notifications(window: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect what napari tells the user."""
    from napari.utils.notifications import notification_manager

    told: list[str] = []
    monkeypatch.setattr(notification_manager, "records", [])

    def tell(event: Any) -> None:
        told.append(event.message)

    notification_manager.notification_ready.connect(tell)
    yield told
    notification_manager.notification_ready.disconnect(tell)
