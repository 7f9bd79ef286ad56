"""New OME-Zarr images (version 0.4), for results of images that are not a Zarr."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from normeq.images.formats import is_zarr
from normeq.images.source import Band, ImageFile
from normeq.images.tiff.ome_writer import ome_axes
from normeq.images.zarr_pyramid import downsample

_CHUNK = 512
_KINDS = {"T": ("time", "second"), "C": ("channel", None)}
_SPACE = ("space", "micrometer")


def write_ome_zarr(source: ImageFile, target: Path, bands: Iterable[Band]) -> None:
    """Write an image as OME-Zarr with a pyramid; bands left out keep what `target` has."""
    names, lengths = ome_axes(source)
    colours = source.samples > 1
    axes = names + ("C" if colours else "") + "YX"
    # The order that OME-Zarr asks for.
    order = sorted(range(len(axes)), key=lambda axis: "TCZYX".index(axes[axis]))
    shape = (*lengths, *([source.samples] if colours else []), source.height, source.width)
    levels = _levels(source.height, source.width)
    if not is_zarr(target):
        group = zarr.create_group(target, zarr_format=2)
        for level, sides in enumerate(levels):
            stored = [{"Y": sides[0], "X": sides[1]}.get(axes[n], shape[n]) for n in order]
            chunks = (*[1] * (len(stored) - 2), *(min(_CHUNK, side) for side in stored[-2:]))
            group.create_array(
                str(level),
                shape=stored,
                chunks=chunks,
                dtype=source.dtype,
                chunk_key_encoding={"name": "v2", "separator": "/"},
            )
        group.attrs.update(_attributes(source, "".join(axes[n] for n in order), levels))
    output: Any = zarr.open_array(target / "0", mode="r+")
    for band in bands:
        rows = slice(band.start, band.start + len(band.pixels))
        place = list(np.unravel_index(band.frame, lengths)) if lengths else []
        for sample in range(source.samples):
            full = [*map(int, place), *([sample] if colours else []), rows, slice(None)]
            output[tuple(full[n] for n in order)] = band.pixels[..., sample]
    for fine, coarse in pairwise(range(len(levels))):
        downsample(target / str(fine), target / str(coarse))


def _levels(height: int, width: int) -> list[tuple[int, int]]:
    """Return the sides of each level of a pyramid, halved until one chunk holds a plane.

    >>> _levels(1000, 3000)
    [(1000, 3000), (500, 1500), (250, 750), (125, 375)]
    """
    levels = [(height, width)]
    while max(levels[-1]) > _CHUNK:
        levels.append((max(1, levels[-1][0] // 2), max(1, levels[-1][1] // 2)))
    return levels


def _attributes(source: ImageFile, axes: str, levels: list[tuple[int, int]]) -> dict[str, Any]:
    sizes = {axis: float(f"{size:.9g}") for axis, size in source.calibration.sizes.items()}
    described = []
    for axis in axes:
        kind, unit = _KINDS.get(axis, _SPACE)
        about = {"name": axis.lower(), "type": kind}
        described.append(about | ({"unit": unit} if unit and axis in sizes else {}))
    datasets = []
    for level, sides in enumerate(levels):
        coarser = {"Y": levels[0][0] / sides[0], "X": levels[0][1] / sides[1]}
        scale = [sizes.get(axis, 1.0) * coarser.get(axis, 1.0) for axis in axes]
        change = {"type": "scale", "scale": scale}
        datasets.append({"path": str(level), "coordinateTransformations": [change]})
    image = {"version": "0.4", "name": source.path.name, "axes": described, "datasets": datasets}
    attributes: dict[str, Any] = {"multiscales": [image]}
    if source.calibration.channels:
        channels = [{"label": name} for name in source.calibration.channels]
        attributes["omero"] = {"channels": channels}
    if source.provenance is not None:
        attributes["normeq"] = json.loads(source.provenance.as_json())
    return attributes
