"""NPZ: one array of a zip of NumPy files, decoded whole; the others are kept."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normeq.errors import InputError, UsageError, reading
from normeq.images.axes import default_axes
from normeq.images.source import Band, ImageFile, IndexedSource, Pixels, checked_dtype


class NpzSource(IndexedSource, ImageFile):
    """An array of an ``.npz`` file; `part` is its name, needed where several may be images."""

    format = "NPZ"
    streams = False

    def __init__(self, path: Path, axes: str | None = None, part: str | None = None) -> None:
        with reading(path, self.format), zipfile.ZipFile(path) as archive:
            self._member = _chosen(path, archive, part)
            shape, self._fortran, self._stored = _header(archive, self._member)
            size = archive.getinfo(self._member).file_size
            dtype = checked_dtype(self._stored, str(path))
            super().__init__(path, shape, dtype, axes or default_axes(shape))
            if size < self.pixels * self._stored.itemsize:
                raise ValueError("the file is truncated: an array is cut off")
        self._array: Pixels | None = None

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame; the array is read whole on the first call."""
        if self._array is None:
            with (
                reading(self.path, self.format),
                zipfile.ZipFile(self.path) as archive,
                archive.open(self._member) as file,
            ):
                self._array = np.lib.format.read_array(file, allow_pickle=False)
        selected = self._array[self.index(frame, rows, columns)]
        return self.to_plane(np.array(selected, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a zip of the same arrays, this one with new pixels."""
        array = np.empty(self.shape, self._stored, order="F" if self._fortran else "C")
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            array[self.index(band.frame, rows)] = self.from_plane(band.pixels)
        with zipfile.ZipFile(self.path) as archive, zipfile.ZipFile(target, "w") as copy:
            for member in archive.infolist():
                about = zipfile.ZipInfo(member.filename, member.date_time)
                about.compress_type = member.compress_type
                with copy.open(about, "w", force_zip64=True) as file:
                    if member.filename == self._member:
                        np.lib.format.write_array(file, array, allow_pickle=False)
                    else:
                        with archive.open(member) as other:
                            while data := other.read(2**20):
                                file.write(data)

    @property
    def unportable(self) -> Sequence[str]:
        """The other arrays, if there are any."""
        with zipfile.ZipFile(self.path) as archive:
            others = len(archive.namelist()) - 1
        return ("its other arrays",) if others else ()

    def close(self) -> None:
        """Drop the decoded array."""
        self._array = None


def _header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and dtype of an array."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(file)
        return np.lib.format.read_array_header_2_0(file)


def _chosen(path: Path, archive: zipfile.ZipFile, part: str | None) -> str:
    """Return the array that is named, or the only one of two or more axes."""
    arrays = [name for name in archive.namelist() if name.endswith(".npy")]
    members = {name.removesuffix(".npy"): name for name in arrays}
    if part is not None:
        if part.strip("/") not in members:
            known = ", ".join(list(members)[:8]) or "none"
            raise UsageError(f"{path}: {part!r} is not one of its arrays, which are {known}.")
        return members[part.strip("/")]
    found = [name for name, member in members.items() if len(_header(archive, member)[0]) >= 2]
    if not found:
        raise InputError(f"{path} contains no array of two or more axes.")
    if len(found) > 1:
        raise UsageError(
            f"{path} contains {len(found)} arrays, {', '.join(found[:8])}; name one of them: "
            f"{path}:{found[0]}."
        )
    return members[found[0]]
