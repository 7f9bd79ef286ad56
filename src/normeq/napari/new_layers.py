"""Layers made from another: the same place, units, contrast and colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from napari.layers import Image

    from normeq.napari.layer_run import LayerResult

#: Where the metadata of a layer says what we know of it.
ABOUT = "normeq"
# What each layer has for itself, or what belongs to its pixels alone.
_NOT_KEPT = ("name", "visible", "locked_data_level", "auto_contrast", "multiscale", "metadata")
# Layers in these ways of blending cover what is below.
_COVERING = ("opaque", "translucent", "translucent_no_depth")


def kept_state(layer: Image, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a layer that lies where another does and looks the same.

    Parameters
    ----------
    layer
        The other layer.
    about
        What the metadata of the new layer says of it.
    """
    _, old, _ = layer.as_layer_data_tuple()
    state = {key: value for key, value in old.items() if key not in _NOT_KEPT}
    state["metadata"] = {**layer.metadata, ABOUT: dict(about)}
    return state


def moved_state(layer: Image, offset: Sequence[float], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for a layer whose first pixel is the pixel `offset` of the other."""
    from napari.utils.transforms import Affine

    to_place = Affine(
        rotate=layer.rotate, scale=layer.scale, shear=layer.shear, translate=layer.translate
    )
    return kept_state(layer, about) | {"translate": to_place(np.asarray(offset, float))}


def role(layer: Image) -> str | None:
    """Return what a layer of ours is there for, such as ``"preview"``; None for other layers."""
    about = layer.metadata.get(ABOUT)
    return about.get("role") if isinstance(about, Mapping) else None


def covers(layer: Image) -> bool:
    """Tell whether a layer hides what is below it."""
    return str(layer.blending) in _COVERING


def result_layers(layer: Image, result: LayerResult, about: Mapping[str, Any]) -> list[Image]:
    """Return the layer of a result, and that of what was removed if there is one.

    Parameters
    ----------
    layer
        The layer that was denoised.
    result
        What became of it.
    about
        How it was made, for the metadata.
    """
    from napari.layers import Image

    said = {**about, "noise": result.noise}
    data = result.levels if layer.multiscale else result.levels[0]
    clean = Image(
        data,
        name=f"{layer.name} denoised",
        multiscale=layer.multiscale,
        **kept_state(layer, {**said, "role": "result"}),
    )
    if not layer.rgb:
        clean.contrast_limits_range = layer.contrast_limits_range
    if result.removed is None:
        return [clean]
    reach = result.removed_reach or 1.0
    removed, limits = result.removed, (-reach, reach)
    if layer.rgb:  # colours go from 0 to 1: gray is where nothing was removed
        removed, limits = (removed / (2 * reach) + 0.5).clip(0, 1).astype(np.float32), (0.0, 1.0)
    look = {"colormap": "gray", "contrast_limits": limits, "gamma": 1.0, "multiscale": False}
    return [
        clean,
        Image(
            removed,
            name=f"{layer.name} removed (±{reach:.3g})",
            visible=False,
            **kept_state(layer, {**said, "role": "removed", "reach": reach}) | look,
        ),
    ]
