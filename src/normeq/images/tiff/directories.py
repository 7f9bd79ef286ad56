"""The chain of directories in a TIFF, checked before tifffile follows it."""

from __future__ import annotations

import struct

import tifffile


def check_directories(tif: tifffile.TiffFile) -> None:
    """Follow the chain of pages, and the places of their tags: tifffile ignores broken ones."""
    if tif.is_ndpi:  # whose offsets are stretched beyond the standard
        return
    layout, file = tif.tiff, tif.filehandle
    seen: set[int] = set()
    file.seek(layout.offsetsize if tif.is_bigtiff else 4)
    while offset := _unpacked(layout.offsetformat, file):
        if offset in seen:
            raise ValueError("its chain of pages goes round in a circle")
        seen.add(offset)
        file.seek(offset)
        tags = file.read(_unpacked(layout.tagnoformat, file) * layout.tagsize)
        whole = tags[: len(tags) // layout.tagsize * layout.tagsize]
        # Each tag: code, type, how many values, and these, or their place if they do not fit.
        entry = f"{tif.byteorder}HH{'QQ' if tif.is_bigtiff else 'II'}"
        for _, kind, count, place in struct.iter_unpack(entry, whole):
            size = count * struct.calcsize(tifffile.TIFF.DATA_FORMATS.get(kind, "0s"))
            if size > layout.offsetsize and place + size > file.size:
                raise ValueError("the file is truncated: one of its tags is cut off")


def _unpacked(format: str, file: tifffile.FileHandle) -> int:
    """Read one number, which must be there."""
    data = file.read(struct.calcsize(format))
    if len(data) < struct.calcsize(format):
        raise ValueError("the file is truncated: its chain of pages is broken")
    return int(struct.unpack(format, data)[0])
