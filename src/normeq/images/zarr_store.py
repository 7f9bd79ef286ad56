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
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from normeq.errors import InputError, reading
from normeq.images.source import (
    ZARR_MARKERS,
    Band,
    ImageFile,
    IndexedSource,
    Pixels,
    checked_dtype,
    default_axes,
    is_zarr,
)

_LARGEST_CHUNK = 2048
# A band has about this many pixels; it is recorded, when it is done, for a run that resumes.
_BAND_PIXELS = 2**23


class ZarrSource(IndexedSource, ImageFile):
    """A Zarr array, or the first multiscale image of an OME-Zarr group."""

    format = "Zarr"
    resumable = True

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            node: Any = zarr.open(path, mode="r", use_consolidated=False)
            self._levels: list[str] = []
            found = None
            if isinstance(node, zarr.Group):
                self._levels, found = _multiscales(path, node)
                levels: list[Any] = [node[level] for level in self._levels]
                _check_pyramid(path, [level.shape for level in levels])
                node = levels[0]
            self._array: Any = node
            dtype = checked_dtype(np.dtype(node.dtype), str(path))
            found = axes or found or _named_axes(node) or default_axes(node.shape)
            super().__init__(path, tuple(node.shape), dtype, found)
            self._chunks = self._plane_chunks()

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

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        with reading(self.path, self.format):
            selected = self._array[self.index(frame, slice(start, stop))]
            return self.to_plane(np.asarray(selected, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a copy with new pixels; bands that are left out keep what `target` has."""
        if not is_zarr(target):
            self._write_metadata(target)
        output = zarr.open_array(target / (self._levels or [""])[0], mode="r+")
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            output[self.index(band.frame, rows)] = self.from_plane(band.pixels)
        for fine, coarse in zip(self._levels, self._levels[1:], strict=False):
            self._downsample(target / fine, target / coarse)
        if (target / ".zmetadata").exists():
            zarr.consolidate_metadata(target, zarr_format=2)

    def _write_metadata(self, target: Path) -> None:
        arrays = [self.path / level for level in self._levels] or [self.path]

        def left_out(folder: str, names: list[str]) -> list[str]:
            inside = Path(folder)
            if inside in arrays:  # of an array, only what describes it
                return [name for name in names if not _is_metadata(inside / name)]
            return []

        shutil.copytree(self.path, target, ignore=left_out, dirs_exist_ok=True)
        for folder, _, files in os.walk(target):  # an archive may be read-only, its copy not
            for entry in [Path(folder), *(Path(folder, file) for file in files)]:
                entry.chmod(entry.stat().st_mode | stat.S_IWUSR)
        for level in self._levels or [""]:
            _rechunk(target / level, self._chunks)
        _drop_consolidated(target / "zarr.json")

    def _downsample(self, fine: Path, coarse: Path) -> None:
        """Average blocks of one level of the pyramid into the next, chunk by chunk."""
        source = zarr.open_array(fine, mode="r")
        output: Any = zarr.open_array(coarse, mode="r+")
        factors = _factors(source.shape, output.shape)
        stored_together = output.shards or output.chunks
        spans = [
            [slice(start, min(start + step, size)) for start in range(0, size, step)]
            for size, step in zip(output.shape, stored_together, strict=True)
        ]
        for block in product(*spans):
            output[block] = _block_means(source, block, factors)


def _factors(fine: Sequence[int], coarse: Sequence[int]) -> list[int]:
    """Return by how much each axis shrinks from one level of a pyramid to the next."""
    return [max(1, round(a / b)) for a, b in zip(fine, coarse, strict=True)]


def _check_pyramid(path: Path, shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse a pyramid whose levels are no averages over whole blocks: it could not be rebuilt."""
    for fine, coarse in pairwise(shapes):
        for size, smaller, factor in zip(fine, coarse, _factors(fine, coarse), strict=True):
            if smaller not in (size // factor, -(-size // factor)):
                raise InputError(
                    f"{path}: its pyramid goes from {size} pixels to {smaller}, not by a whole "
                    "factor, and cannot be rebuilt; denoise its first level as an array."
                )


def _block_means(source: Any, block: Sequence[slice], factors: Sequence[int]) -> Pixels:
    """Average the pixels of `source` that fall into each pixel of a block of the next level."""
    wanted = [
        slice(part.start * factor, min(part.stop * factor, size))
        for part, factor, size in zip(block, factors, source.shape, strict=True)
    ]
    pixels = np.asarray(source[tuple(wanted)], dtype=np.float64)
    missing = [
        (0, (part.stop - part.start) * factor - size)
        for part, factor, size in zip(block, factors, pixels.shape, strict=True)
    ]
    if any(after for _, after in missing):
        pixels = np.pad(pixels, missing, mode="edge")
    split = [
        number
        for part, factor in zip(block, factors, strict=True)
        for number in (part.stop - part.start, factor)
    ]
    means: Pixels = pixels.reshape(split).mean(axis=tuple(range(1, len(split), 2)))
    dtype = np.dtype(source.dtype)
    return (np.rint(means) if dtype.kind in "iu" else means).astype(dtype)


def _multiscales(path: Path, group: Any) -> tuple[list[str], str | None]:
    """Return the paths of the levels of an OME-Zarr image, finest first, and its axes."""
    attributes = dict(group.attrs)
    images = attributes.get("ome", attributes).get("multiscales")
    if not images:
        names = ", ".join(sorted(name for name, _ in group.members())[:5]) or "nothing"
        raise InputError(
            f"{path}: is a group, not an OME-Zarr image; it holds {names}: name the array or "
            "image inside it."
        )
    if len(images) > 1:
        raise InputError(f"{path}: holds {len(images)} multiscale images; keep one to a group.")
    levels = [dataset["path"] for dataset in images[0]["datasets"]]
    axes = images[0].get("axes")
    if axes is None:  # before OME-Zarr 0.3 the axes were always these
        return levels, "TCZYX"[-group[levels[0]].ndim :]
    letters = [axis["name"] if isinstance(axis, dict) else axis for axis in axes]
    return levels, "".join(letter[0].upper() for letter in letters)


def _named_axes(array: Any) -> str | None:
    """Return the axes that an array names itself (Zarr 3, xarray), if rows and columns are."""
    names = getattr(array.metadata, "dimension_names", None)
    names = names or array.attrs.get("_ARRAY_DIMENSIONS") or ()
    letters = [str(name or "q")[0].upper() for name in names]
    plain = [str(name).upper() for name in names]
    if len(letters) != array.ndim or "Y" not in plain or "X" not in plain:
        return None
    return "".join(
        letter if name in ("Y", "X") or letter not in "YX" else "Q"
        for name, letter in zip(plain, letters, strict=True)
    )


def _is_metadata(path: Path) -> bool:
    return path.name in (*ZARR_MARKERS, ".zattrs")


def _rechunk(array: Path, chunks: tuple[int, ...]) -> None:
    """Edit the metadata of an array so that it has these chunks."""
    version2 = array / ".zarray"
    file = version2 if version2.exists() else array / "zarr.json"
    metadata = json.loads(file.read_text())
    if file is version2:
        metadata["chunks"] = [min(a, b) for a, b in zip(chunks, metadata["shape"], strict=True)]
    else:
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = list(chunks)
        for codec in metadata["codecs"]:
            if codec["name"] == "sharding_indexed":
                inner = codec["configuration"]["chunk_shape"]
                flat = [min(a, b) for a, b in zip(inner, chunks, strict=True)]
                whole = all(b % a == 0 for a, b in zip(flat, chunks, strict=True))
                codec["configuration"]["chunk_shape"] = flat if whole else list(chunks)
    file.write_text(json.dumps(metadata, indent=2))


def _drop_consolidated(file: Path) -> None:
    """Remove the copy of its arrays' metadata that a group of version 3 may hold: it is stale."""
    if not file.exists():
        return
    metadata = json.loads(file.read_text())
    if metadata.pop("consolidated_metadata", None) is not None:
        file.write_text(json.dumps(metadata, indent=2))
