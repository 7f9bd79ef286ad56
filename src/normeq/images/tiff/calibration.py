"""Pixel sizes and names of channels of a TIFF, from OME-XML, ImageJ or its tags."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from xml.parsers import expat

from normeq.images.physical_units import calibrated
from normeq.images.source import Calibration
from normeq.images.tiff.reader import TiffSource
from normeq.images.tiff.tags import resolution

_RESOLUTION_UNITS = {2: "inch", 3: "cm"}


def calibration_of(source: TiffSource) -> Calibration:
    """Return what a TIFF says of its pixels."""
    if source.tif.ome_metadata:
        return _of_ome(source.tif.ome_metadata)
    about = resolution(source.page(0))
    imagej: dict[str, Any] = source.tif.imagej_metadata or {}
    unit = imagej.get("unit") or _RESOLUTION_UNITS.get(about.get("resolutionunit") or 0)
    sizes: dict[str, float] = {}
    for axis, (pixels, length) in zip("XY", about.get("resolution", ()), strict=False):
        sizes |= calibrated(axis, length / pixels if pixels else 0, unit)
    sizes |= calibrated("Z", imagej.get("spacing"), unit)
    sizes |= calibrated("T", imagej.get("finterval"), imagej.get("tunit", "s"))
    return Calibration(sizes)


def _of_ome(ome_xml: str) -> Calibration:
    sizes: dict[str, float] = {}
    channels: list[str] = []
    images = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal images
        name = name.rpartition(":")[2]
        images += name == "Image"
        if images != 1:
            return
        if name == "Pixels":
            for axis in "XYZ":
                unit = attributes.get(f"PhysicalSize{axis}Unit", "µm")
                sizes.update(calibrated(axis, attributes.get(f"PhysicalSize{axis}"), unit))
            unit = attributes.get("TimeIncrementUnit", "s")
            sizes.update(calibrated("T", attributes.get("TimeIncrement"), unit))
        elif name == "Channel" and "Name" in attributes:
            channels.append(attributes["Name"])

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    with suppress(expat.ExpatError, LookupError):  # what it says before its error counts
        parser.Parse(ome_xml, True)
    return Calibration(sizes, channels)
