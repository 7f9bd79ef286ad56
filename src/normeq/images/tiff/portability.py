"""What a TIFF says beside its pixels and calibration, and no other format would keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from normeq.images.tiff.reader import TiffSource

# Tags of the layout and of the pixel size, and the program, which is another one for a copy.
_LAYOUT = {
    254, 255, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 280, 281, 282, 283, 284, 296, 305,
    317, 322, 323, 324, 325, 338, 339, 530, 531, 532,
}  # fmt: skip
_ORIENTATION, _DESCRIPTION, _UPRIGHT = 274, 270, 1
_IMAGEJ_TAGS = {50838, 50839}
# What ImageJ says of axes and pixel size, and what tifffile says of the shape.
_IMAGEJ = {
    "ImageJ", "images", "channels", "slices", "frames", "hyperstack", "mode", "unit", "yunit",
    "zunit", "spacing", "finterval", "tunit", "loop",
}  # fmt: skip
_SHAPED = {"shape", "axes", "truncated"}
# Elements and attributes of OME-XML that say nothing but axes, pixel size and channels.
_ELEMENTS = {"OME", "Image", "Pixels", "Channel", "LightPath", "TiffData", "UUID"}
_ATTRIBUTES = {
    "UUID", "Creator", "ID", "Name", "FileName", "DimensionOrder", "Type", "BigEndian",
    "Interleaved", "TimeIncrement", "TimeIncrementUnit", "SamplesPerPixel", "SignificantBits",
    "IFD", "PlaneCount",
}  # fmt: skip
_ATTRIBUTES |= {f"{kind}{axis}" for axis in "XYZCT" for kind in ("Size", "First")}
_ATTRIBUTES |= {f"PhysicalSize{axis}{end}" for axis in "XYZ" for end in ("", "Unit")}
# Names in messages, at most.
_NAMED = 6


def unportable(source: TiffSource) -> list[str]:
    """Return, in words, what a result in another format would lose."""
    found = dict.fromkeys(_tags(source))
    if source.series.kind == "imagej":
        found |= dict.fromkeys(set(source.tif.imagej_metadata or {}) - _IMAGEJ)
    elif source.series.kind == "ome":
        found |= dict.fromkeys(_of_ome(source.tif.ome_metadata or ""))
    elif source.series.kind == "shaped":
        found |= dict.fromkeys(set(_json(source.key.description)) - _SHAPED)
    elif source.key.description:
        found["ImageDescription"] = None
    names = list(found)
    more = " and more" if len(names) > _NAMED else ""
    return [f"its {', '.join(names[:_NAMED])}{more}"] if names else []


def _tags(source: TiffSource) -> Iterator[str]:
    """Yield the names of other tags, of the first page and the last."""
    for number in {0, len(source.series.pages) - 1}:
        for tag in source.page(number).tags:
            upright = tag.code == _ORIENTATION and tag.value == _UPRIGHT
            if tag.code not in _LAYOUT | _IMAGEJ_TAGS | {_DESCRIPTION} and not upright:
                yield tag.name


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {"ImageDescription": text} if text else {}
    return found if isinstance(found, dict) else {"ImageDescription": text}


def _of_ome(ome_xml: str) -> list[str]:
    names: list[str] = []

    def start(element: str, attributes: dict[str, str]) -> None:
        name = element.rpartition(":")[2]
        if name not in _ELEMENTS:
            names.append(name)
            return
        inner = [attribute for attribute in attributes if not attribute.startswith(("xml", "xsi"))]
        names.extend(f"{name} {key}" for key in inner if key not in _ATTRIBUTES)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.Parse(ome_xml, True)
    except (expat.ExpatError, LookupError):
        names.append("OME-XML")
    return names
