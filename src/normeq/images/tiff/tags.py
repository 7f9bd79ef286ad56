"""The tags of a page that a copy takes over byte for byte: all that do not describe pixels."""

from __future__ import annotations

import struct
from typing import Any
from xml.parsers import expat

import tifffile

from normeq.images.tiff.ome_xml import noted, relocated
from normeq.images.tiff.pixel_meaning import COLORMAP
from normeq.images.tiff.reader import TiffSource

# How tifffile found the axes: from these, a copy of the tags tells them again.
PORTABLE_KINDS = {"ome", "imagej", "shaped", "uniform", "generic"}

_DESCRIPTION, _SOFTWARE = 270, 305
_ASCII = 2
_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT = 282, 283, 296
# Besides those that tifffile writes itself: kinds of pages, tables of lossy codecs and YCbCr.
_REWRITTEN = tifffile.TIFF.TAG_FILTERED | {254, 255, 347, 529, 530, 531, 532, COLORMAP}
_REWRITTEN |= {_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT}
# What would be untrue of the copy: Photoshop's layers, the places of MetaMorph's planes.
_REWRITTEN |= {37724, 33628, 33629, 33630, 33631}
_RATIONALS = {5: "I", 10: "i"}
# Types of tags whose value is a place in the file, which the copy does not keep.
_OFFSET_TYPES = {13, 18}


def resolution(page: Any) -> dict[str, Any]:
    """Return the pixel size of a page as arguments for tifffile."""
    across, down = (page.tags.get(code) for code in (_X_RESOLUTION, _Y_RESOLUTION))
    if not (_is_ratio(across) and _is_ratio(down)):
        return {}
    unit = page.tags.get(_RESOLUTION_UNIT)
    known = unit is not None and unit.value in tuple(tifffile.RESUNIT)
    return {
        "resolution": (across.value, down.value),
        "resolutionunit": unit.value if known else None,
    }


def _is_ratio(tag: Any) -> bool:
    """Tell whether a tag is there and holds a fraction."""
    value = None if tag is None else tag.value
    return isinstance(value, tuple) and len(value) == 2 and bool(value[1])


def copied(source: TiffSource, number: int) -> list[tuple[Any, ...]]:
    """Return the tags of a page that a copy has too, as tifffile takes them."""
    page = source.page(number)
    # One description is for the whole of an OME file, whichever of its parts a page is from; of
    # kinds that are not portable, the first page has one of ours.
    kind = source.series.kind
    described = kind != "ome" if number else kind in PORTABLE_KINDS
    noted = source.provenance is not None and number == 0
    tags = [
        (tag.code, int(tag.dtype), tag.count, _stored_value(source, page, tag), False)
        for tag in page.tags
        if tag.code not in _REWRITTEN
        and tag.dtype not in _OFFSET_TYPES
        and (described or tag.code != _DESCRIPTION)
        and not (noted and tag.code == _SOFTWARE)
    ]
    if source.provenance is not None and number == 0:
        before = page.tags.get(_SOFTWARE)
        text = f"{before.value}\n" if before is not None else ""
        note = (text + source.provenance.as_line()).encode("ascii", "replace") + b"\0"
        tags.append((_SOFTWARE, _ASCII, len(note), note, False))
    return tags


def _stored_value(source: TiffSource, page: Any, tag: Any) -> bytes | tuple[int, ...]:
    """Return the value of a tag as it is stored."""
    file = source.file_of(page)
    file.seek(tag.valueoffset)
    value = bytes(file.read(tag.valuebytecount))
    if tag.code == _DESCRIPTION and source.series.kind == "ome":
        try:
            value = relocated(value, source.pages)
            return value if source.provenance is None else noted(value, source.provenance)
        except (expat.ExpatError, LookupError):  # which tifffile has understood all the same
            return value
    if tag.code == _DESCRIPTION and source.series.kind == "shaped":
        return value.replace(b', "truncated": true', b"")  # the copy has a directory for each page
    if int(tag.dtype) in _RATIONALS:  # which tifffile takes as numerators and denominators only
        layout = f"{page.parent.byteorder}{2 * tag.count}{_RATIONALS[int(tag.dtype)]}"
        return struct.unpack(layout, value)
    return value
