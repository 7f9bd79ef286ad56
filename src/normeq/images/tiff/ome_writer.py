"""New OME-TIFFs, for images whose own format cannot be written."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from normeq.errors import InputError
from normeq.images.source import Band, ImageFile
from normeq.images.tiff.page_layout import regrouped

_STRIP_PIXELS = 2**20
# The leading axes that OME has: time, depth and channels.
_OME_AXES = "TZC"
OME_DTYPES = {
    "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "float64",
}  # fmt: skip


def write_ome(source: ImageFile, target: Path, bands: Iterable[Band]) -> None:
    """Write an image as OME-TIFF, with the axes, pixel sizes and channel names it has."""
    axes, shape = ome_axes(source)
    plane = "YXS" if source.samples > 1 else "YX"
    sides = (source.height, source.width, source.samples)[: len(plane)]
    rows = min(source.height, max(1, _STRIP_PIXELS // (source.width * source.samples)))
    with tifffile.TiffWriter(target, bigtiff=True, ome=True) as writer:
        writer.write(
            _encoded(source, bands, rows),
            shape=(*shape, *sides),
            dtype=source.dtype,
            photometric="rgb" if source.samples in (3, 4) else "minisblack",
            rowsperstrip=rows,
            compression="zlib",
            software=None if source.provenance is None else source.provenance.as_line(),
            metadata={"axes": axes + plane} | _about(source, axes, shape),
        )


def ome_axes(source: ImageFile) -> tuple[str, tuple[int, ...]]:
    """Return leading axes and lengths in OME's terms: others take the place of one that is free."""
    # Samples that are not stored together are channels.
    names = source.leading_axes.replace("S", "C")
    long = [
        (name, length) for name, length in zip(names, source.leading, strict=True) if length > 1
    ]
    free = [axis for axis in _OME_AXES if axis not in dict(long)]
    letters = [name if name in _OME_AXES else free.pop(0) if free else "" for name, _ in long]
    if "" in letters or len(set(letters)) < len(letters):
        raise InputError(
            f"{source.path} has axes {source.axes}, more than OME-TIFF, the format of the "
            "result, can hold; save a part of it on its own."
        )
    return "".join(letters), tuple(length for _, length in long)


def _about(source: ImageFile, axes: str, shape: tuple[int, ...]) -> dict[str, Any]:
    about: dict[str, Any] = {}
    for axis, exact in source.calibration.sizes.items():
        size = float(f"{exact:.9g}")  # differences of coordinates carry rounding errors
        if axis in "XYZ":
            about |= {f"PhysicalSize{axis}": size, f"PhysicalSize{axis}Unit": "µm"}
        elif axis == "T":
            about |= {"TimeIncrement": size, "TimeIncrementUnit": "s"}
    channels = list(source.calibration.channels)
    if "C" in axes and len(channels) == shape[axes.index("C")]:
        about["Channel"] = {"Name": channels}
    if source.provenance is not None:
        about["Description"] = source.provenance.as_json()
    return about


def _encoded(source: ImageFile, bands: Iterable[Band], rows: int) -> Iterator[bytes]:
    for strip in regrouped(bands, source.height, rows):
        yield zlib.compress(np.ascontiguousarray(strip.astype(source.dtype)).tobytes())
