"""The dock widget: which layer, which model, which noise; preview, filters, result."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from magicgui.widgets import (
    CheckBox,
    ComboBox,
    Container,
    FileEdit,
    FloatSlider,
    FloatSpinBox,
    Label,
    LineEdit,
    PushButton,
    TextEdit,
)

from normeq import __version__
from normeq.errors import NormeqError, UsageError
from normeq.napari.background import Background
from normeq.napari.filter_view import FilterView
from normeq.napari.layer_axes import described_axes, recognised_axes
from normeq.napari.live_preview import LivePreview, ShownLayer
from normeq.napari.model_choices import OWN_FILE, model_choices
from normeq.napari.new_layers import covers, result_layers, role

if TYPE_CHECKING:
    import napari.viewer
    from napari.layers import Image

    from normeq.napari.layer_image import DenoiseSettings, LayerImage
    from normeq.napari.layer_run import LayerResult

_AUTOMATIC, _KNOWN = "automatic", "level is known"
_PATTERNS = ("recognised", "RGGB", "BGGR", "GRBG", "GBRG", "none")


class DenoiseWidget(Container[Any]):
    """Denoises a layer, whatever its units.

    Parameters
    ----------
    viewer
        The viewer that it belongs to.
    """

    def __init__(self, viewer: napari.viewer.Viewer) -> None:
        self._viewer = viewer
        self._image: LayerImage | None = None
        self._bar: Any = None
        self._models = [("default (shipped)", "default")]
        self._last_error = ""
        self._make_form()
        super().__init__(widgets=self._rows(), labels=True)
        self._preview = LivePreview(viewer, self._subject, self._show_noise, self._fail)
        self._filters = FilterView(viewer, self._subject, self._show_filter, self._fail)
        self._run = Background(self._show_progress, self._add_result, self._fail, self._end_run)
        self._catalogue = Background(lambda _: None, self._offer_models, self._fail)
        self._connect()
        self._catalogue.start(_list_models)

    # The form --------------------------------------------------------------------------------

    def _make_form(self) -> None:
        self.layer = ComboBox(label="Layer", choices=self._layers, nullable=False)
        self.axes = LineEdit(
            label="Axes", tooltip="One letter for each axis: Y are rows, X columns, C channels."
        )
        self.sizes = Label()
        self.model = ComboBox(label="Model", choices=lambda _: self._models)
        self.file = FileEdit(label="Weights", filter="*.safetensors *.onnx", visible=False)
        self.own_range = CheckBox(
            text="its 0 and 1 are the contrast limits",
            tooltip="For a model that is not equivariant, and depends on units.",
            visible=False,
        )
        self.noise = ComboBox(label="Noise", choices=[_AUTOMATIC, _KNOWN])
        self.sigma = FloatSpinBox(
            label="Sigma",
            value=1.0,
            min=0.0,
            max=1e12,
            step=None,
            tooltip="Standard deviation of the noise, in the units of the layer.",
            visible=False,
        )
        self.strength = FloatSlider(
            label="Strength 1.00",
            value=1.0,
            min=0.25,
            max=3.0,
            step=0.05,
            readout=False,  # for which napari leaves no room
            tooltip="Factor on the noise level: above 1 removes more.",
        )
        self.mosaic = ComboBox(
            label="Mosaic",
            choices=_PATTERNS,
            tooltip="The colours of a camera's raw image; 'none' if a layer only looks like one.",
        )
        self.preview = CheckBox(text="Preview of what is in view")
        self.filters = CheckBox(text="Filter of the pixel under the mouse")
        self.removed = CheckBox(text="Also add what is removed")
        self.denoise = PushButton(text="Denoise")
        self.cancel = PushButton(text="Cancel", enabled=False)
        self.message = TextEdit(tooltip="What was found out about the noise, or about a pixel.")

    def _rows(self) -> list[Any]:
        sizes, message = (
            Container(widgets=[each], labels=False) for each in (self.sizes, self.message)
        )
        buttons = Container(widgets=[self.denoise, self.cancel], layout="horizontal", labels=False)
        form = [self.layer, self.axes, sizes, self.model, self.file, self.own_range]
        form += [self.noise, self.sigma, self.strength, self.mosaic]
        return [*form, self.preview, self.filters, self.removed, buttons, message]

    def _connect(self) -> None:
        self.message.native.setReadOnly(True)
        self.strength.changed.connect(self._show_strength)
        self.layer.changed.connect(self._choose_layer)
        self.model.changed.connect(self._show_fields)
        self.noise.changed.connect(self._show_fields)
        self.axes.changed.connect(self._forget_image)
        said = [self.axes, self.model, self.file, self.own_range, self.noise, self.sigma]
        for field in (*said, self.strength, self.mosaic, self.preview):
            field.changed.connect(self._settings_changed)
        self.preview.changed.connect(self._preview.switch)
        self.filters.changed.connect(self._filters.switch)
        self.denoise.changed.connect(self._start)
        self.cancel.changed.connect(self._run.stop)
        self._viewer.layers.events.removed.connect(self._layer_removed)
        self.native_parent_changed.connect(self._parent_changed)
        active = self._viewer.layers.selection.active
        if active in self.layer.choices:
            self.layer.value = active
        self._choose_layer()

    def _layers(self, _: object = None) -> list[Image]:
        from napari.layers import Image

        return [
            layer
            for layer in self._viewer.layers
            if isinstance(layer, Image) and role(layer) not in ("preview", "filter")
        ]

    def _offer_models(self, choices: list[tuple[str, str]]) -> None:
        self._models = choices
        self.model.reset_choices()

    def _choose_layer(self) -> None:
        layer = self.layer.value
        self._forget_image()
        if layer is None:
            self.axes.value, self.sizes.value = "", "Open an image first."
            return
        self.axes.value = recognised_axes(layer.axis_labels, layer.rgb)
        self.sizes.value = described_axes(self.axes.value, _finest(layer).shape)
        self.message.value = ""
        self._settings_changed()

    def _show_fields(self) -> None:
        own = self.model.value == OWN_FILE
        self.file.visible = self.own_range.visible = own
        self.sigma.visible = self.noise.value == _KNOWN

    def _show_strength(self, value: float) -> None:
        self.strength.label = f"Strength {value:.2f}"

    def _layer_removed(self) -> None:
        if self.layer.value is None:
            self.preview.value = self.filters.value = False

    def _forget_image(self) -> None:
        self._image = None

    def _parent_changed(self, parent: object) -> None:
        """End everything when the dock is closed, which takes its contents out first."""
        if parent is None:
            self._viewer.layers.events.removed.disconnect(self._layer_removed)
            self._filters.switch(False)
            self._preview.switch(False)
            self._run.stop()

    # What is said ----------------------------------------------------------------------------

    def _settings(self) -> DenoiseSettings:
        from normeq.napari.layer_image import DenoiseSettings

        own = self.model.value == OWN_FILE
        if own and not os.path.isfile(str(self.file.value)):
            raise UsageError("choose a weights file (.safetensors, .onnx), or another model.")
        limits = tuple(float(limit) for limit in self.layer.value.contrast_limits)
        return DenoiseSettings(
            model=str(self.file.value) if own else self.model.value,
            sigma=self.sigma.value if self.noise.value == _KNOWN else None,
            strength=self.strength.value,
            bayer=None if self.mosaic.value == _PATTERNS[0] else self.mosaic.value,
            value_range=(limits[0], limits[1]) if own and self.own_range.value else None,
        )

    def _subject(self) -> ShownLayer | None:
        """Return the layer and how it is denoised; None, after a notification, if that is wrong."""
        from normeq.napari.layer_image import LayerImage

        layer = self.layer.value
        if layer is None:
            return None
        try:
            data = _finest(layer)
            if self._image is None or self._image.data is not data:
                self._image = LayerImage(data, self.axes.value.upper(), layer.rgb)
            return ShownLayer(layer, self._image, self._settings())
        except NormeqError as error:
            self._fail(str(error))
            return None

    def _settings_changed(self) -> None:
        self._last_error = ""

    # What is shown ---------------------------------------------------------------------------

    def _fail(self, sentence: str) -> None:
        from napari.utils.notifications import show_error

        if sentence != self._last_error:  # not once for every movement of the mouse
            self._last_error = sentence
            show_error(f"{sentence[:1].upper()}{sentence[1:]}")

    def _show_noise(self, lines: list[str]) -> None:
        self.message.value = "\n".join(lines) or "noise: not estimated"

    def _show_filter(self, text: str) -> None:
        self.message.value = text

    # Denoising -------------------------------------------------------------------------------

    def _start(self) -> None:
        from napari.utils.progress import cancelable_progress

        self._last_error = ""
        if self.layer.value is None:
            self._fail("there is no image to denoise: open one first.")
        subject = self._subject()
        if subject is None:
            return
        self.denoise.enabled, self.cancel.enabled = False, True
        self._bar = cancelable_progress(total=100, desc=f"denoising {subject.layer.name}")
        self._run.start(partial(_steps, subject, self.removed.value))

    def _show_progress(self, share: float) -> None:
        self._bar.update(int(100 * share) - self._bar.n)
        if self._bar.is_canceled:
            self._run.stop()

    def _add_result(self, outcome: tuple[ShownLayer, LayerResult]) -> None:
        subject, result = outcome
        layer, settings = subject.layer, subject.settings
        about = {"version": __version__, "model": settings.model, "strength": settings.strength}
        about |= {} if settings.sigma is None else {"sigma": settings.sigma}
        if self.preview.value:
            self.preview.value = False
        for each in reversed(result_layers(layer, result, about)):
            self._viewer.add_layer(each)
        layer.visible = layer.visible and covers(layer)
        self._show_noise(result.noise)

    def _end_run(self) -> None:
        self._bar.close()
        self.denoise.enabled, self.cancel.enabled = True, False


def _finest(layer: Image) -> Any:
    return layer.data[0] if layer.multiscale else layer.data


def _list_models(stop: threading.Event) -> Generator[None, None, list[tuple[str, str]]]:
    yield
    return model_choices()


def _steps(
    subject: ShownLayer, with_removed: bool, stop: threading.Event
) -> Generator[float, None, tuple[ShownLayer, LayerResult]]:
    from normeq.napari.layer_run import denoise_in_steps

    layer = subject.layer
    coarser = [tuple(map(int, level.shape)) for level in layer.data[1:]] if layer.multiscale else []
    result = yield from denoise_in_steps(
        subject.image, subject.settings, coarser=coarser, with_removed=with_removed, cancel=stop
    )
    return subject, result
