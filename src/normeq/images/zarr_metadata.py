"""What the metadata of Zarr arrays and OME-Zarr groups says, and how a copy changes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from normeq.errors import InputError
from normeq.images.axes import axes_from_names, axis_letter
from normeq.images.formats import ZARR_MARKERS
from normeq.images.physical_units import calibrated
from normeq.images.source import Calibration
from normeq.images.zarr_safety import inside


def multiscales(path: Path, group: Any) -> tuple[list[str], str | None]:
    """Return the paths of the levels of an OME-Zarr image, finest first, and its axes."""
    attributes = dict(group.attrs)
    images = attributes.get("ome", attributes).get("multiscales")
    if not images:
        names = ", ".join(sorted(name for name, _ in group.members())[:5]) or "nothing"
        raise InputError(
            f"{path} is a group, not an OME-Zarr image; it contains {names}: name the array or "
            "image inside it."
        )
    if len(images) > 1:
        raise InputError(f"{path} contains {len(images)} multiscale images; keep one per group.")
    levels = [inside(path, dataset["path"]) for dataset in images[0]["datasets"]]
    axes = images[0].get("axes")
    if axes is None:  # before OME-Zarr 0.3 the axes were always these
        return levels, "TCZYX"[-group[levels[0]].ndim :]
    axis_names = [axis["name"] if isinstance(axis, dict) else axis for axis in axes]
    return levels, "".join(map(axis_letter, axis_names))


def calibration_of(group: Any) -> Calibration:
    """Return the pixel sizes of the finest level of an OME-Zarr image, and names of channels."""
    attributes = dict(group.attrs)
    attributes = attributes.get("ome", attributes)
    sizes: dict[str, float] = {}
    try:
        image = attributes["multiscales"][0]
        changes = image["datasets"][0]["coordinateTransformations"]
        scale = next(change["scale"] for change in changes if change["type"] == "scale")
        for axis, size in zip(image["axes"], scale, strict=True):
            sizes |= calibrated(axis_letter(axis["name"]), size, axis.get("unit"))
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration):
        sizes = {}  # a wrong description does not cost the pixels
    try:
        channels = [str(channel["label"]) for channel in attributes["omero"]["channels"]]
    except (LookupError, TypeError):
        channels = []
    return Calibration(sizes, channels)


def unportable(node: Any, levels: list[str]) -> list[str]:
    """Return, in words, what a result in another format would lose of an array or image."""
    attributes = dict(node.attrs)
    attributes |= attributes.pop("ome", {})
    names = set(attributes) - {"multiscales", "_ARRAY_DIMENSIONS", "version"}
    omero = attributes.get("omero", {})
    channels = omero.get("channels", []) if isinstance(omero, dict) else [omero]
    if all(isinstance(channel, dict) and set(channel) <= {"label"} for channel in channels):
        names.discard("omero")
    lost = [f"its attributes {', '.join(sorted(map(str, names))[:6])}"] if names else []
    others = [name for name, _ in node.members() if name not in levels] if levels else []
    return lost + ([f"its {', '.join(sorted(others)[:6])}"] if others else [])


def named_axes(array: Any) -> str | None:
    """Return the axes that an array names itself (Zarr 3, xarray), if rows and columns are."""
    names = getattr(array.metadata, "dimension_names", None)
    names = names or array.attrs.get("_ARRAY_DIMENSIONS") or ()
    return axes_from_names(names) if len(names) == array.ndim else None


def is_metadata(path: Path) -> bool:
    """Tell whether a file describes an array, rather than being a part of its pixels."""
    return path.name in (*ZARR_MARKERS, ".zattrs")


def rechunk(array: Path, chunks: tuple[int, ...]) -> None:
    """Edit the metadata of an array so that it has these chunks."""
    version2 = array / ".zarray"
    file = version2 if version2.exists() else array / "zarr.json"
    metadata = json.loads(file.read_text())
    if file is version2:
        metadata["chunks"] = [min(a, b) for a, b in zip(chunks, metadata["shape"], strict=True)]
    else:
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = list(chunks)
        for codec in metadata["codecs"]:
            if codec["name"] == "sharding_indexed":
                inner = codec["configuration"]["chunk_shape"]
                flat = [min(a, b) for a, b in zip(inner, chunks, strict=True)]
                whole = all(b % a == 0 for a, b in zip(flat, chunks, strict=True))
                codec["configuration"]["chunk_shape"] = flat if whole else list(chunks)
    file.write_text(json.dumps(metadata, indent=2))


def drop_consolidated(file: Path) -> None:
    """Remove the copy of its arrays' metadata that a group of version 3 may hold: it is stale."""
    if not file.exists():
        return
    metadata = json.loads(file.read_text())
    if metadata.pop("consolidated_metadata", None) is not None:
        file.write_text(json.dumps(metadata, indent=2))


def add_attribute(node: Path, name: str, value: Any) -> None:
    """Add an attribute to an array or group."""
    version3 = node / "zarr.json"
    file = version3 if version3.exists() else node / ".zattrs"
    metadata = json.loads(file.read_text()) if file.exists() else {}
    attributes = metadata.setdefault("attributes", {}) if file is version3 else metadata
    attributes[name] = value
    file.write_text(json.dumps(metadata, indent=2))
