"""The plugin in a real viewer, used as a person uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest

import normeq
from normeq._support.photograph import sample_photograph
from normeq.napari import layer_run

Wait = Callable[..., None]

CLEAN = 1000 * sample_photograph(64)
NOISY = CLEAN + np.random.default_rng(0).normal(0, 40, (64, 64))
STACK = np.stack([[NOISY, NOISY[::-1]]] * 2)


@pytest.fixture
def opened(viewer: Any, wait: Wait) -> Callable[..., Any]:
    """Return what opens the widget on a layer."""

    def open_widget(data: Any, **look: Any) -> Any:
        layer = viewer.add_image(data, name="noisy", **look)
        _, widget = viewer.window.add_plugin_dock_widget("normeq")
        wait(lambda: len(widget.model.choices) > 1)
        assert widget.layer.value is layer
        return widget

    return open_widget


def denoised(viewer: Any, widget: Any, wait: Wait) -> Any:
    """Press the button, and return the layer that appears."""
    widget.denoise.native.click()
    assert not widget.denoise.enabled
    wait(lambda: widget.denoise.enabled)
    return viewer.layers["noisy denoised"]


def test_a_layer_is_denoised_and_the_result_lies_where_it_does(
    viewer: Any, opened: Any, wait: Wait
) -> None:
    look = {
        "scale": (1.0, 2.0, 0.5, 0.5),
        "translate": (0.0, 1.0, 2.0, 3.0),
        "units": ("s", "um", "um", "um"),
        "axis_labels": ("t", "z", "y", "x"),
        "colormap": "magenta",
        "contrast_limits": (100.0, 900.0),
    }
    widget = opened(STACK, **look)
    assert widget.axes.value == "TZYX"
    assert "T 2 × Z 2 × Y 64 × X 64" in widget.sizes.value
    result = denoised(viewer, widget, wait)
    np.testing.assert_array_equal(result.data, normeq.denoise(STACK, axes="TZYX"))
    source = viewer.layers["noisy"]
    for name in ("scale", "translate", "units", "axis_labels", "contrast_limits"):
        assert tuple(getattr(result, name)) == tuple(getattr(source, name)), name
    assert result.colormap.name == "magenta"
    assert result.metadata["normeq"]["model"] == "default"
    assert "sigma" in widget.message.value  # the noise that was found
    assert [layer.name for layer in viewer.layers] == ["noisy", "noisy denoised"]


def test_the_noise_may_be_stated_and_the_rest_kept(viewer: Any, opened: Any, wait: Wait) -> None:
    widget = opened(NOISY)
    assert not widget.sigma.visible
    widget.noise.value = "level is known"
    assert widget.sigma.visible
    widget.sigma.value = 40.0
    widget.removed.value = True
    result = denoised(viewer, widget, wait)
    np.testing.assert_array_equal(result.data, normeq.denoise(NOISY, 40.0))
    removed = next(layer for layer in viewer.layers if "removed" in layer.name)
    np.testing.assert_allclose(removed.data, NOISY - result.data, rtol=1e-5, atol=1e-3)
    low, high = removed.contrast_limits
    assert low == -high < 0
    assert not removed.visible


def test_dask_and_multiscale_layers(viewer: Any, opened: Any, wait: Wait) -> None:
    fine = da.from_array(np.tile(NOISY, (4, 4)), chunks=(64, 128))
    widget = opened([fine, fine[::2, ::2], fine[::4, ::4]], multiscale=True)
    widget.model.value = "mean_filter"
    widget.preview.value = True
    wait(lambda: widget._preview.layer is not None and not widget._preview.busy)
    shown = widget._preview.layer.data.copy()
    assert shown.shape == (256, 256)  # the finest level, whichever is drawn
    result = denoised(viewer, widget, wait)
    assert widget._preview.layer is None
    assert result.multiscale
    assert [level.shape for level in result.data] == [(256, 256), (128, 128), (64, 64)]
    whole = normeq.denoise(np.asarray(fine), model="mean_filter")
    np.testing.assert_array_equal(result.data[0], whole)
    np.testing.assert_allclose(shown, whole)


def test_colours(viewer: Any, opened: Any, wait: Wait) -> None:
    colours = np.stack([NOISY, NOISY[::-1], NOISY.T], -1).clip(0, 1000) / 1000
    widget = opened(colours, rgb=True)
    assert widget.axes.value == "YXS"
    widget.removed.value = True
    widget.model.value = "mean_filter"
    result = denoised(viewer, widget, wait)
    assert result.rgb
    clean = normeq.denoise(colours, model="mean_filter", channel_axis=-1)
    np.testing.assert_allclose(result.data, clean)
    assert next(layer for layer in viewer.layers if "removed" in layer.name).rgb


@pytest.mark.parametrize("button", ["ours", "napari's"])
def test_cancel_ends_the_run_and_leaves_nothing(
    viewer: Any, opened: Any, wait: Wait, monkeypatch: pytest.MonkeyPatch, button: str
) -> None:
    from napari.utils.progress import progress

    running = threading.Event()

    def endless(*_: object, cancel: threading.Event, **__: object) -> None:
        running.set()
        while not cancel.is_set():
            cancel.wait(0.01)
        raise normeq.errors.Cancelled("the run was cancelled.")

    monkeypatch.setattr(layer_run, "denoise", endless)
    widget = opened(NOISY)
    widget.model.value = "mean_filter"
    widget.denoise.native.click()
    wait(running.is_set)
    (bar,) = progress._all_instances
    assert "noisy" in bar.desc
    if button == "ours":
        widget.cancel.native.click()
    else:
        bar.cancel()
    wait(lambda: widget.denoise.enabled)
    assert not widget.cancel.enabled
    assert [layer.name for layer in viewer.layers] == ["noisy"]
    assert not progress._all_instances


def test_the_viewer_lives_while_a_run_goes_on(
    viewer: Any, opened: Any, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(image: Any, *_: object, progress: Callable[[float], object], **__: object) -> Any:
        progress(0.5)
        go_on.wait(60)
        return image

    monkeypatch.setattr(layer_run, "denoise", slow)
    widget = opened(STACK)
    widget.model.value = "mean_filter"
    widget.denoise.native.click()
    wait(lambda: widget._bar.n == 50)
    viewer.dims.set_current_step(0, 1)
    viewer.camera.zoom *= 2
    wait(lambda: viewer.dims.current_step[0] == 1)
    assert not widget.denoise.enabled  # the run goes on
    go_on.set()
    wait(lambda: "noisy denoised" in viewer.layers)


def test_errors_are_notifications_with_our_sentences(
    viewer: Any, opened: Any, wait: Wait, notifications: list[str], tmp_path: Path
) -> None:
    widget = opened(NOISY)
    widget.model.value = "file"
    widget.denoise.native.click()
    assert notifications[-1] == "Choose a weights file (.safetensors, .onnx), or another model."
    (tmp_path / "bad.safetensors").write_bytes(b"no weights")
    widget.file.value = tmp_path / "bad.safetensors"
    widget.denoise.native.click()
    wait(lambda: widget.denoise.enabled)
    assert "bad.safetensors" in notifications[-1]
    widget.model.value = "default"
    widget.axes.value = "YY"
    widget.denoise.native.click()
    assert "must name Y (rows) and X (columns) exactly once" in notifications[-1]
    assert len(notifications) == 3
    assert [layer.name for layer in viewer.layers] == ["noisy"]


def test_weights_files_that_depend_on_units_take_the_contrast_limits(
    viewer: Any, opened: Any, wait: Wait, tmp_path: Path
) -> None:
    path = tmp_path / "ordinary.safetensors"
    normeq.save(normeq.create("fdncnn", "ordinary", width=4, depth=3), path, {})
    widget = opened(NOISY, contrast_limits=(0.0, 1000.0))
    widget.model.value = "file"
    widget.file.value = path
    widget.own_range.value = True
    result = denoised(viewer, widget, wait)
    clean = normeq.denoise(NOISY, model=str(path), value_range=(0.0, 1000.0))
    np.testing.assert_array_equal(result.data, clean)


def test_preview_shows_what_is_in_view_and_follows(viewer: Any, opened: Any, wait: Wait) -> None:
    big = np.tile(STACK, (1, 1, 4, 4))
    widget = opened(big, scale=(1.0, 1.0, 0.5, 0.5), contrast_limits=(0.0, 1000.0))
    widget.model.value = "mean_filter"
    selected = viewer.layers.selection.active
    viewer.camera.zoom = 8 * viewer.camera.zoom
    widget.preview.value = True
    wait(lambda: widget._preview.layer is not None and widget._preview.layer.data.size < 128**2)
    wait(lambda: not widget._preview.busy)
    shown = widget._preview.layer
    place = tuple(int(step) for step in viewer.dims.current_step[:2])
    top, left = (round(shown.translate[axis] / 0.5) for axis in (2, 3))
    height, width = shown.data.shape[2:]
    whole = normeq.denoise(big[place], model="mean_filter")
    np.testing.assert_allclose(
        shown.data[0, 0], whole[top : top + height, left : left + width], rtol=1e-6
    )
    assert widget.model.value == "mean_filter"  # a new layer changes no choice
    assert viewer.layers.selection.active is selected
    assert shown not in widget.layer.choices

    viewer.layers["noisy"].contrast_limits = (10.0, 500.0)
    assert list(shown.contrast_limits) == [10.0, 500.0]
    viewer.dims.set_current_step(1, 1 - place[1])  # as one moves a slider
    wait(lambda: widget._preview.layer is not shown and not widget._preview.busy)
    assert widget._preview.layer.translate[1] == 1 - place[1]
    moved = widget._preview.layer
    widget.model.value = "median_filter"
    wait(lambda: widget._preview.layer not in (None, moved) and not widget._preview.busy)

    widget.preview.value = False
    assert [layer.name for layer in viewer.layers] == ["noisy"]


def test_preview_of_a_view_without_rows_and_columns_says_so(
    viewer: Any, opened: Any, wait: Wait, notifications: list[str]
) -> None:
    widget = opened(STACK)
    viewer.dims.ndisplay = 3
    widget.preview.value = True
    assert "switch it to two dimensions" in notifications[-1]


def test_the_filter_of_the_pixel_under_the_mouse(viewer: Any, opened: Any, wait: Wait) -> None:
    widget = opened(np.tile(NOISY, (2, 2)), scale=(2.0, 2.0))
    widget.filters.value = True
    (moved,) = viewer.mouse_move_callbacks[-1:]
    moved(viewer, SimpleNamespace(position=(100.0, 80.0)))
    wait(lambda: widget._filters.layer is not None)
    assert "row 50, column 40" in widget.message.value
    assert "sum of weights  1.000" in widget.message.value
    overlay = widget._filters.layer
    row, column = (round(50 - overlay.translate[0] / 2), round(40 - overlay.translate[1] / 2))
    assert overlay.data.shape[0] > row >= 0
    assert overlay.data[row, column] > 0  # the pixel itself counts
    widget.filters.value = False
    assert [layer.name for layer in viewer.layers] == ["noisy"]
    assert moved not in viewer.mouse_move_callbacks


def test_closing_the_dock_ends_everything(viewer: Any, opened: Any, wait: Wait) -> None:
    widget = opened(NOISY)
    widget.preview.value = widget.filters.value = True
    wait(lambda: widget._preview.layer is not None)
    viewer.window.remove_dock_widget("all")
    wait(lambda: not widget._preview.busy)
    assert [layer.name for layer in viewer.layers] == ["noisy"]
    assert not viewer.mouse_move_callbacks


def test_the_plugin_is_in_the_menus(viewer: Any) -> None:
    from app_model import Application

    menus = Application.get_app("napari").menus

    def titles(menu: str) -> list[str]:
        return [str(getattr(item, "command", item).title) for item in menus.get_menu(menu)]

    assert any("normeq" in title for title in titles("napari/layers/filter"))
    assert any("normeq" in title for title in titles("napari/plugins"))


def test_samples_open(viewer: Any) -> None:
    (layer,) = viewer.open_sample("normeq", "colours")
    assert layer.rgb
    assert layer.name == "noisy colours"
