"""``normeq info``: what a model or an image is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normeq.cli.cards import card_text
from normeq.errors import printable

if TYPE_CHECKING:
    from normeq.denoising.onnx_network import OnnxNetwork
    from normeq.images import ImageFile


def info(
    what: Annotated[str, typer.Argument(metavar="MODEL|IMAGE", help="Model name or file.")],
) -> None:
    """Show the card of a model, or the header of an image."""
    from normeq.images import format_of, split_part
    from normeq.images.addresses import Address, located

    path = located(what)
    if isinstance(path, Address) or (split_part(path)[0].exists() and format_of(path)):
        _print_rows(_of_image(path))
        return
    rows, card = _of_model(what)
    _print_rows(rows)
    if card:
        typer.echo(f"\n{printable(card_text(card))}")


def _print_rows(rows: dict[str, Any]) -> None:
    width = max(len(name) for name in rows)
    for name, value in rows.items():
        typer.echo(f"{name:<{width}}  {printable(str(value))}")


def _of_image(path: Path) -> dict[str, Any]:
    from normeq.images import open_image

    with open_image(path) as source:
        rows: dict[str, Any] = {}
        for image in source.parts:
            mark = f" of {image.title}" if len(source.parts) > 1 else ""
            rows |= {f"{name}{mark}": value for name, value in _rows(image).items()}
        return rows


def _rows(source: ImageFile) -> dict[str, Any]:
    """Say what one image of a file is."""
    from normeq.denoising.image_parts import estimate_part, parts_of
    from normeq.denoising.outcome import header

    rows = header(source) | {"planes": source.planes, "pixels": source.pixels}
    rows["shape"] = " x ".join(str(length) for length in source.shape)
    if (source.gain, source.offset) != (1.0, 0.0):
        rows["units"] = f"{source.gain:g} * stored + {source.offset:g}"
    for name, part in parts_of(source, each_plane=False).items():
        model = estimate_part(source, part, None)
        if model is not None:
            rows[f"noise, {name}" if name else "noise"] = model.describe()
    return rows | _calibration(source)


def _calibration(source: ImageFile) -> dict[str, str]:
    """Say what a format knows of its pixels beside their values."""
    about = source.calibration
    sizes = [
        f"{axis} {size:.6g} {'s' if axis == 'T' else 'µm'}" for axis, size in about.sizes.items()
    ]
    sizes += [f"{axis} {size:.6g} arcsec" for axis, size in about.angles.items()]
    rows = {"pixel size": ", ".join(sizes), "channels": ", ".join(about.channels)}
    return {name: text for name, text in rows.items() if text}


def _of_model(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a model is, and its card."""
    from torch import nn

    from normeq.classical import Method
    from normeq.denoising.names import resolve
    from normeq.denoising.onnx_network import OnnxNetwork
    from normeq.models.releases import installed_release

    model = resolve(name)
    rows: dict[str, Any] = {"model": str(installed_release(name.lower()) or name)}
    for attribute in ("architecture", "variant", "equivariance", "takes_sigma", "channels"):
        if hasattr(model, attribute):
            rows[attribute.replace("_", " ")] = getattr(model, attribute)
    if isinstance(model, OnnxNetwork):
        rows |= _of_onnx(model)
    elif isinstance(model, nn.Module):
        rows["parameters"] = f"{sum(part.numel() for part in model.parameters()):,}"
    if isinstance(model, nn.Module):
        local = getattr(model, "inner", model)
        if getattr(local, "receptive_field", None) is not None:
            rows["receptive field"] = f"{local.receptive_field} pixels to each side"
    if isinstance(model, Method):
        rows |= {"description": model.description, "needs sigma": "no" if model.blind else "yes"}
    return rows, getattr(model, "card", {})


def _of_onnx(model: OnnxNetwork) -> dict[str, Any]:
    """Return what the header of an ONNX file says that other networks do not have."""
    header = model.header
    if header is None:
        return {"written by": "another program"}
    return {
        "network": header.name,
        "inputs": ", ".join(header.inputs),
        "opset": header.opset,
        "stride": header.stride,
        "digest": header.digest,
    }
