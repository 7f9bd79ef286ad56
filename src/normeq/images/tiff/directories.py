"""The chain of directories in a TIFF, checked before tifffile follows it."""

from __future__ import annotations

import struct

import tifffile

# Tags without which there is no image, and the types that they may have.
_SIDES = {256: "width", 257: "height"}
_INTEGERS = {1: "B", 3: "H", 4: "I", 16: "Q"}


def check_directories(tif: tifffile.TiffFile) -> None:
    """Follow the chain of pages, and the places of their tags: tifffile ignores broken ones."""
    if tif.is_ndpi:  # whose offsets are stretched beyond the standard
        return
    layout, file = tif.tiff, tif.filehandle
    seen: set[int] = set()
    file.seek(layout.offsetsize if tif.is_bigtiff else 4)
    while offset := _unpacked(layout.offsetformat, file):
        if offset in seen:
            raise ValueError("its chain of pages is a loop")
        seen.add(offset)
        file.seek(offset)
        size = _unpacked(layout.tagnoformat, file) * layout.tagsize
        if size > file.size:
            raise ValueError("the file is truncated: one of its directories is cut off")
        tags = file.read(size)
        whole = tags[: len(tags) // layout.tagsize * layout.tagsize]
        for start in range(0, len(whole), layout.tagsize):
            _check_tag(whole[start : start + layout.tagsize], tif)


def _check_tag(entry: bytes, tif: tifffile.TiffFile) -> None:
    """Check one tag: code, type, how many values, and these, or their place if they do not fit."""
    code, kind, count, place = struct.unpack(
        f"{tif.byteorder}HH{'QQ' if tif.is_bigtiff else 'II'}", entry
    )
    size = count * struct.calcsize(tifffile.TIFF.DATA_FORMATS.get(kind, "0s"))
    if size > tif.tiff.offsetsize and place + size > tif.filehandle.size:
        raise ValueError("the file is truncated: one of its tags is cut off")
    if code in _SIDES:
        value = entry[4 + tif.tiff.offsetsize :][: struct.calcsize(_INTEGERS.get(kind, "0s"))]
        if count != 1 or not any(value):
            raise ValueError(f"its {_SIDES[code]} is missing, or 0")


def _unpacked(format: str, file: tifffile.FileHandle) -> int:
    """Read one number, which must be there."""
    data = file.read(struct.calcsize(format))
    if len(data) < struct.calcsize(format):
        raise ValueError("the file is truncated: its chain of pages is broken")
    return int(struct.unpack(format, data)[0])
