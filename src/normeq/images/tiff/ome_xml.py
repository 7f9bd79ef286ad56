"""OME-XML, the description of an OME-TIFF: where it says that the planes are."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat


def relocated(ome_xml: bytes, pages: int) -> bytes:
    """Let OME-XML find its planes in consecutive pages of its own file.

    >>> relocated(b'<Pixels><TiffData IFD="7"><UUID FileName="a"/></TiffData></Pixels>', 3)
    b'<Pixels><TiffData IFD="0" PlaneCount="3"/></Pixels>'
    """
    text = ome_xml.rstrip(b"\0")
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
