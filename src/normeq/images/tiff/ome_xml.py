"""OME-XML, the description of an OME-TIFF: where it says that the planes are.

What it says is checked before tifffile follows it, and changed where a copy is laid out otherwise.
"""

from __future__ import annotations

import math
import re
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from normeq.errors import InputError
from normeq.images.provenance import Provenance

# tifffile makes a list of all planes that are described, and of the values of all other axes.
_MOST_PLANES = 10**6
_ROOT_TAG = re.compile(rb"""<(?:[^<>"']|"[^"<]*"|'[^'<]*')*>""")
_UUID = re.compile(rb"""\sUUID=(?:"[^"<]*"|'[^'<]*')""")


def check_places(path: Path, ome_xml: str) -> None:
    """Refuse OME-XML that leads to files elsewhere, or describes more planes than can be."""

    def start(name: str, attributes: dict[str, str]) -> None:
        file = attributes.get("FileName", "")
        if {PurePath(file).name, PureWindowsPath(file).name} != {file}:
            raise InputError(f"{path} has planes in {file!r}; only files beside it are read.")
        sizes = [_number(attributes.get(f"Size{axis}"), 1) for axis in "ZCT"]
        steps = _number(attributes.get("End"), 0) - _number(attributes.get("Start"), 0)
        count = max(math.prod(sizes), steps / (_number(attributes.get("Step"), 1) or math.nan))
        if not count <= _MOST_PLANES:
            raise InputError(f"{path} describes {count:.3g} planes in its {name} element.")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.Parse(ome_xml, True)
    except (expat.ExpatError, LookupError):  # then tifffile does not follow it either
        return


def _number(text: str | None, default: float) -> float:
    try:
        return default if text is None else float(text)
    except ValueError:
        return default


def relocated(ome_xml: bytes, pages: int) -> bytes:
    """Let OME-XML find its planes in consecutive pages of its own file.

    >>> relocated(b'<Pixels><TiffData IFD="7"><UUID FileName="a"/></TiffData></Pixels>', 3)
    b'<Pixels><TiffData IFD="0" PlaneCount="3"/></Pixels>'
    """
    text = ome_xml.rstrip(b"\0")
    try:
        places = _elements(text, "TiffData")
    except (expat.ExpatError, LookupError):  # not UTF-8: as tifffile reads it then
        text = text.decode("cp1252", errors="replace").encode()
        places = _elements(text, "TiffData")
    if not places:
        return ome_xml
    parts, end = [], 0
    for start, stop in places:
        parts.append(text[end:start])
        end = stop
    name = text[places[0][0] + 1 :].split(b"TiffData", 1)[0] + b"TiffData"  # with its prefix
    parts.insert(1, b'<%s IFD="0" PlaneCount="%d"/>' % (name, pages))
    return b"".join(parts) + text[end:]


def noted(ome_xml: bytes, provenance: Provenance) -> bytes:
    """Let OME-XML say how an image was made, and give it an identity of its own."""
    images = _elements(ome_xml, "Image")
    roots = _elements(ome_xml, "OME")
    if not images or not roots:
        return ome_xml
    prefix = ome_xml[roots[0][0] + 1 :].split(b"OME", 1)[0]
    note = (
        b'<%(p)sCommentAnnotation ID="Annotation:%(id)s" Namespace="normeq">'
        b"<%(p)sValue>%(text)s</%(p)sValue></%(p)sCommentAnnotation>"
    ) % {
        b"p": prefix,
        b"id": str(provenance.identity).encode(),
        b"text": escape(provenance.as_json()).encode(),
    }
    annotations = _elements(ome_xml, "StructuredAnnotations")
    closing = b"</%sStructuredAnnotations" % prefix
    place = ome_xml.rfind(closing, *annotations[0]) if annotations else -1
    if place < 0:  # they come after the images
        place = images[-1][1]
        note = b"<%s>%s%s>" % (closing[2:], note, closing)
    return _renamed(ome_xml[:place] + note + ome_xml[place:], roots[0][0], provenance)


def _renamed(ome_xml: bytes, root: int, provenance: Provenance) -> bytes:
    """Give the root element a new UUID, in place of the one it may have."""
    end = root + len(_ROOT_TAG.match(ome_xml, root).group())  # type: ignore[union-attr]
    tag = _UUID.sub(b"", ome_xml[root:end])
    identity = b' UUID="urn:uuid:%s"' % str(provenance.identity).encode()
    cut = len(tag) - (2 if tag.endswith(b"/>") else 1)
    return ome_xml[:root] + tag[:cut] + identity + tag[cut:] + ome_xml[end:]


def _elements(xml: bytes, local_name: str) -> list[tuple[int, int]]:
    """Return where the outermost elements of a name begin and end."""
    found: list[tuple[int, int]] = []
    open_at: list[int] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: Any) -> None:
        if name.rpartition(":")[2] == local_name:
            open_at.append(parser.CurrentByteIndex)

    def end(name: str) -> None:
        if name.rpartition(":")[2] != local_name:
            return
        begin, stop = open_at.pop(), parser.CurrentByteIndex
        if xml.startswith(f"</{name}".encode(), stop):  # else the tag closed itself, and ends here
            stop = xml.index(b">", stop) + 1
        if not open_at:
            found.append((begin, stop))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(xml, True)
    return found
