"""EXIF and GPS of a TIFF: directories beside its pages, which lie elsewhere in a copy."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import tifffile

# Tags of a page that hold the place of a directory: tifffile writes them only if named so.
_POINTERS = {34665: "ExifTag", 34853: "GPSTag"}
# Pointers inside EXIF, to what no reader needs.
_LEFT_OUT = {40965}
_LONG, _LONG8 = 4, 16


class Entry(NamedTuple):
    """A tag as it is stored: its bytes, and where in its directory they, or their place, are."""

    code: int
    kind: int
    number: int
    value: bytes
    place: int


def pointers(page: Any, bigtiff: bool) -> list[tuple[Any, ...]]:
    """Return tags for the copy of a page, to be filled in by `copy_directories`."""
    kind = _LONG8 if bigtiff else _LONG
    return [(name, kind, 1, 0, False) for code, name in _POINTERS.items() if code in page.tags]


def copy_directories(page: Any, target: Path, bigtiff: bool) -> None:
    """Append the directories of a page to a finished copy, and let its first page find them."""
    found = [code for code in _POINTERS if code in page.tags]
    if not found:
        return
    source, original = page.parent.filehandle, page.parent.tiff
    endian = "LE" if page.parent.byteorder == "<" else "BE"
    layout = getattr(tifffile.TIFF, f"{'BIG' if bigtiff else 'CLASSIC'}_{endian}")
    with target.open("r+b") as copy:
        copy.seek(layout.offsetsize if bigtiff else 4)
        [first] = struct.unpack(layout.offsetformat, copy.read(layout.offsetsize))
        places = {tag.code: tag.place for tag in _directory(copy, layout, first)}
        for code in found:
            # tifffile takes the directory for the value of its pointer.
            tags = list(_directory(source, original, page.tags[code].valueoffset))
            place = _append(copy, layout, [tag for tag in tags if tag.code not in _LEFT_OUT])
            copy.seek(places[code])
            copy.write(struct.pack(layout.offsetformat, place))


def _directory(file: Any, layout: Any, offset: int) -> Iterator[Entry]:
    """Read the tags of a directory with their values, in the byte order of the file."""
    file.seek(offset)
    [count] = struct.unpack(layout.tagnoformat, file.read(layout.tagnosize))
    stored = file.read(count * layout.tagsize)
    for start in range(0, len(stored), layout.tagsize):
        header = stored[start : start + layout.tagsize]
        code, kind = struct.unpack(layout.tagformat1, header[:4])
        [number] = struct.unpack(layout.offsetformat, header[4 : 4 + layout.offsetsize])
        value = header[4 + layout.offsetsize :]
        size = number * struct.calcsize(tifffile.TIFF.DATA_FORMATS[kind])
        if size > layout.offsetsize:
            file.seek(struct.unpack(layout.offsetformat, value)[0])
            value = file.read(size)
        place = offset + layout.tagnosize + start + 4 + layout.offsetsize
        yield Entry(code, kind, number, value[:size], place)


def _append(file: BinaryIO, layout: Any, tags: list[Entry]) -> int:
    """Write a directory at the end of a file; return its place."""
    end = file.seek(0, os.SEEK_END)
    file.write(b"\0" * (end % 2))  # directories begin at even places
    place = file.tell()
    after = place + layout.tagnosize + len(tags) * layout.tagsize + layout.offsetsize
    entries, values = b"", b""
    for tag in tags:
        value = tag.value.ljust(layout.offsetsize, b"\0")
        if len(value) > layout.offsetsize:
            stored, value = value, struct.pack(layout.offsetformat, after + len(values))
            values += stored + b"\0" * (len(stored) % 2)
        entries += struct.pack(layout.tagformat1, tag.code, tag.kind)
        entries += struct.pack(layout.offsetformat, tag.number) + value
    no_next = struct.pack(layout.offsetformat, 0)
    file.write(struct.pack(layout.tagnoformat, len(tags)) + entries + no_next + values)
    return place
