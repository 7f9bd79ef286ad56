"""The chain of directories in a TIFF, checked before tifffile follows it."""

from __future__ import annotations

import struct

import tifffile

# Tags without which there is no image, and the types that they may have.
_SIDES = {256: "width", 257: "height"}
_INTEGERS = {1: "B", 3: "H", 4: "I", 16: "Q"}
_VALUE_SIZES = {
    int(kind): struct.calcsize(format) for kind, format in tifffile.TIFF.DATA_FORMATS.items()
}


def check_directories(tif: tifffile.TiffFile) -> None:
    """Follow the chain of pages, and the places of their tags: tifffile ignores broken ones."""
    if tif.is_ndpi:  # whose offsets are stretched beyond the standard
        return
    layout, file = tif.tiff, tif.filehandle
    # Code, type, how many values, and these, or their place if they do not fit.
    entry = struct.Struct(f"{tif.byteorder}HH{'QQ' if tif.is_bigtiff else 'II'}")
    seen: set[int] = set()
    file.seek(layout.offsetsize if tif.is_bigtiff else 4)
    while offset := _unpacked(layout.offsetformat, file):
        if offset in seen:
            raise ValueError("its chain of pages is a loop")
        seen.add(offset)
        file.seek(offset)
        size = _unpacked(layout.tagnoformat, file) * entry.size
        if size > file.size:
            raise ValueError("the file is truncated: one of its directories is cut off")
        _check_tags(file.read(size), entry, layout.offsetsize, file.size)


def _check_tags(tags: bytes, entry: struct.Struct, room: int, end: int) -> None:
    """Check that values of tags are inside the file, and that the page has a width and a height.

    Parameters
    ----------
    tags, entry
        A directory, and the layout of each tag in it.
    room
        Bytes for a value that is stored in the tag itself; larger ones are elsewhere.
    end
        Length of the file.
    """
    whole = tags[: len(tags) // entry.size * entry.size]
    for number, (code, kind, count, place) in enumerate(entry.iter_unpack(whole)):
        length = count * _VALUE_SIZES.get(kind, 0)
        if length > room and place + length > end:
            raise ValueError("the file is truncated: one of its tags is cut off")
        if code in _SIDES:
            start = number * entry.size + 4 + room
            value = whole[start : start + struct.calcsize(_INTEGERS.get(kind, "0s"))]
            if count != 1 or not any(value):
                raise ValueError(f"its {_SIDES[code]} is missing, or 0")


def _unpacked(format: str, file: tifffile.FileHandle) -> int:
    """Read one number, which must be there."""
    data = file.read(struct.calcsize(format))
    if len(data) < struct.calcsize(format):
        raise ValueError("the file is truncated: its chain of pages is broken")
    return int(struct.unpack(format, data)[0])
