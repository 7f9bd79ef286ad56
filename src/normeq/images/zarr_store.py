"""Zarr arrays and OME-Zarr images, versions 2 and 3, in folders: chunk by chunk.

The copy has the metadata of the original, word for word, except that a chunk lies within one
plane, so that planes can be finished one by one. Every other part of an OME-Zarr (labels,
say) is copied as it is, and its pyramid is built again from the denoised image.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from normeq._support import memory
from normeq.errors import FileError, InputError, reading
from normeq.images.axes import default_axes
from normeq.images.formats import is_zarr
from normeq.images.source import Band, Calibration, ImageFile, IndexedSource, Pixels, checked_dtype
from normeq.images.zarr_metadata import (
    add_attribute,
    calibration_of,
    drop_consolidated,
    is_metadata,
    multiscales,
    named_axes,
    rechunk,
    unportable,
)
from normeq.images.zarr_pyramid import check_pyramid, downsample
from normeq.images.zarr_safety import ContainedStore, bound_chunks, check_entry

_LARGEST_CHUNK = 2048
# A band has about this many pixels; it is recorded, when it is done, for a run that resumes.
_BAND_PIXELS = 2**23


class ZarrSource(IndexedSource, ImageFile):
    """A Zarr array, or the first multiscale image of an OME-Zarr group."""

    format = "Zarr"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            node: Any = zarr.open(self._opened(path), mode="r", use_consolidated=False)
            self._node = node
            self._levels: list[str] = []
            found = None
            self._calibration = Calibration()
            if isinstance(node, zarr.Group):
                self._levels, found = multiscales(path, node)
                self._calibration = calibration_of(node)
                levels: list[Any] = [_level(path, node, level) for level in self._levels]
                check_pyramid(path, [level.shape for level in levels])
                node = levels[0]
            self._array: Any = node
            bound_chunks(node)
            _check_chunks(path, node)
            dtype = checked_dtype(np.dtype(node.dtype), str(path))
            found = axes or found or named_axes(node) or default_axes(node.shape)
            super().__init__(path, tuple(node.shape), dtype, found)
            self._chunks = self._plane_chunks()

    def _opened(self, path: Path) -> Any:
        """Return the store of a path."""
        return ContainedStore(path, read_only=True)

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels of an OME-Zarr."""
        return self._calibration

    @property
    def unportable(self) -> Sequence[str]:
        """Attributes that say more than axes, pixel size and channels, and other arrays."""
        return unportable(self._node, self._levels)

    def _plane_chunks(self) -> tuple[int, ...]:
        """Return chunks of about the volume of the input's that lie within one plane."""
        stored = tuple(self._array.shards or self._array.chunks)
        depth = math.prod(
            size for size, axis in zip(stored, self.axes, strict=True) if axis not in "YX"
        )
        factor = math.ceil(math.sqrt(depth))
        if self._array.shards:  # which hold whole chunks, and so may be larger than the image
            return tuple(
                size if axis in "YX" else 1 for size, axis in zip(stored, self.axes, strict=True)
            )
        return tuple(
            max(1, min(size * factor, _LARGEST_CHUNK, length)) if axis in "YX" else 1
            for size, length, axis in zip(stored, self.shape, self.axes, strict=True)
        )

    @property
    def band_rows(self) -> int:
        """Rows of whole chunks: no chunk is written twice, and a resumed run finds its bands."""
        rows = self._chunks[self.axes.index("Y")]
        if self.height * self.width <= _BAND_PIXELS:
            return self.height
        return min(self.height, max(1, _BAND_PIXELS // (self.width * rows)) * rows)

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame; only the chunks they touch are read."""
        with reading(self.path, self.format):
            selected = self._array[self.index(frame, rows, columns)]
            return self.to_plane(np.asarray(selected, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a copy with new pixels; bands that are left out keep what `target` has."""
        self.begin(target)
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            with _encoding(self.path):
                self.store(target, band.frame, rows, slice(0, self.width), band.pixels)
        for fine, coarse in self.pyramid(target):
            with _encoding(self.path):
                downsample(fine, coarse)
        self.finish(target)

    def begin(self, target: Path) -> None:
        """Write everything but pixels, unless that has been done."""
        if not is_zarr(target):
            self._write_metadata(target)

    def store(self, target: Path, frame: int, rows: slice, columns: slice, pixels: Pixels) -> None:
        """Write a rectangle of a frame; whole chunks of it, or another writer may be disturbed."""
        output = zarr.open_array(target / (self._levels or [""])[0], mode="r+")
        output[self.index(frame, rows, columns)] = self.from_plane(pixels)

    def pyramid(self, target: Path) -> list[tuple[Path, Path]]:
        """Return which levels of the pyramid are averaged into which, in order."""
        levels = [target / level for level in self._levels]
        return list(pairwise(levels))

    def finish(self, target: Path) -> None:
        """Bring the metadata up to date, after all pixels have been written."""
        if (target / ".zmetadata").exists():
            zarr.consolidate_metadata(target, zarr_format=2)

    @property
    def stored_together(self) -> tuple[int, int]:
        """Rows and columns of what the copy stores in one file."""
        return self._chunks[self.axes.index("Y")], self._chunks[self.axes.index("X")]

    @property
    def frames_together(self) -> int:
        """How many consecutive frames share chunks of this image."""
        stored = self._array.shards or self._array.chunks
        leading = [place for place, axis in enumerate(self.axes) if axis not in "YX"]
        return min(stored[leading[-1]], self.shape[leading[-1]]) if leading else 1

    def read_frames(self, frames: range, rows: slice, columns: slice) -> dict[int, Pixels]:
        """Read a rectangle of consecutive frames; chunks that they share are decoded once."""
        leading = [place for place, axis in enumerate(self.axes) if axis not in "YX"]
        depth = self.shape[leading[-1]] if leading else 1
        if self.frames_together == 1 or frames.start // depth != (frames.stop - 1) // depth:
            return {frame: self.read_region(frame, rows, columns) for frame in frames}
        where = list(self.index(frames.start, rows, columns))
        first = frames.start % depth
        where[leading[-1]] = slice(first, first + len(frames))
        with reading(self.path, self.format):
            block = np.asarray(self._array[tuple(where)], dtype=self.dtype)
        left = [axis for axis in self.axes if axis in "YX"]
        place = sum(self.axes.index(axis) < leading[-1] for axis in left)
        planes = np.moveaxis(block, place, 0)
        return {frame: self.to_plane(plane) for frame, plane in zip(frames, planes, strict=True)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as a path."""
        return type(self), (self.path.absolute(), self.axes)

    def _write_metadata(self, target: Path) -> None:
        self._copy_description(target)
        for level in self._levels or [""]:
            rechunk(target / level, self._chunks)
        drop_consolidated(target / "zarr.json")
        if self.provenance is not None:
            add_attribute(target, "normeq", json.loads(self.provenance.as_json()))

    def _copy_description(self, target: Path) -> None:
        """Copy everything but the pixels of the image."""
        arrays = [self.path / level for level in self._levels] or [self.path]

        def left_out(folder: str, names: list[str]) -> list[str]:
            here = Path(folder)
            kept = [name for name in names if here not in arrays or is_metadata(here / name)]
            for name in kept:  # of an array, only what describes it
                check_entry(here / name)
            return list(set(names).difference(kept))

        shutil.copytree(self.path, target, ignore=left_out, dirs_exist_ok=True)
        for folder, _, files in os.walk(target):  # an archive may be read-only, its copy not
            for entry in [Path(folder), *(Path(folder, file) for file in files)]:
                entry.chmod(entry.stat().st_mode | stat.S_IWUSR)


@contextmanager
def _encoding(path: Path) -> Iterator[None]:
    """Turn what a codec raises into a sentence, but not what the disk does."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        raise FileError(
            f"{path}: the copy cannot be encoded, because the metadata is damaged or of an unknown "
            "kind."
        ) from e


def _check_chunks(path: Path, array: Any) -> None:
    """Refuse chunks that do not fit into memory, since each is decoded whole."""
    size = math.prod(array.chunks) * array.dtype.itemsize
    if 2 * size > memory.available():  # encoded and decoded
        raise InputError(
            f"{path} has chunks of {size / 2**30:.1f} GB, more than there is memory for; "
            "store it again in smaller chunks."
        )


def _level(path: Path, group: Any, name: str) -> Any:
    found = group.get(name)
    if not isinstance(found, zarr.Array):
        raise InputError(f"{path} names an array {name!r}, but does not contain it.")
    return found
