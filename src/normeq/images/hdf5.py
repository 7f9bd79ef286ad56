"""HDF5: one dataset of a file, replaced in a copy of it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from normeq._support import memory
from normeq.errors import InputError, UsageError, reading
from normeq.images.axes import default_axes
from normeq.images.physical_units import calibrated
from normeq.images.source import (
    Band,
    Calibration,
    ImageFile,
    IndexedSource,
    Pixels,
    checked_dtype,
)


class Hdf5Source(IndexedSource, ImageFile):
    """A dataset in an HDF5 file; everything else in the file is kept.

    Parameters
    ----------
    path, axes
        The file, and its axes in place of what the dataset says.
    part
        The path of the dataset in the file; it may be left out if there is only one image.
    """

    format = "HDF5"

    def __init__(self, path: Path, axes: str | None = None, part: str | None = None) -> None:
        with reading(path, self.format), h5py.File(path, "r", locking=False) as file:
            self._name = part.strip("/") if part else _only_image(path, file)
            dataset = dataset_of(path, file, self._name)
            shape = tuple(int(length) for length in dataset.shape)
            found = axes or _named_axes(dataset) or default_axes(shape)
            super().__init__(path, shape, checked_dtype(dataset.dtype, str(path)), found)
            self._sizes = _sizes(dataset)
        self._opened: Any = None

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes, as ImageJ and others note them."""
        return Calibration(self._sizes)

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame."""
        with reading(self.path, self.format):
            if self._opened is None:
                self._opened = h5py.File(self.path, "r", locking=False)
            selected = self._opened[self._name][self.index(frame, rows, columns)]
            return self.to_plane(np.asarray(selected, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Replace the dataset in a copy of the file; its chunks and filters stay."""
        shutil.copyfile(self.path, target)
        with h5py.File(target, "r+", locking=False) as file:
            dataset = file[self._name]
            for band in bands:
                rows = slice(band.start, band.start + len(band.pixels))
                dataset[self.index(band.frame, rows)] = self.from_plane(band.pixels)
            if self.provenance is not None:
                dataset.attrs["normeq"] = self.provenance.as_json()

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def dataset_of(path: Path, file: Any, name: str) -> Any:
    """Return a dataset that lies in the file itself: links to other files are not followed."""
    place = file
    for step in name.split("/"):
        link = place.get(step, getlink=True) if isinstance(place, h5py.Group) else None
        if link is None:
            known = ", ".join(_images(file)[:5]) or "none"
            raise UsageError(f"{path}: {name!r} is not one of its datasets, which are {known}.")
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{path}: {name} is a link; name the dataset that it links to.")
        place = place[step]
    if not isinstance(place, h5py.Dataset):
        known = ", ".join(_images(place)[:5]) or "none"
        raise UsageError(f"{path}: {name} is a group; its datasets are {known}.")
    if place.external or place.is_virtual:
        raise InputError(f"{path}: {name} takes its pixels from other files, which are not read.")
    size = math.prod(place.chunks or ()) * place.dtype.itemsize
    if 2 * size > memory.available():
        raise InputError(
            f"{path}: {name} has chunks of {size / 2**30:.1f} GB, more than there is memory for; "
            "store it again in smaller ones."
        )
    return place


def _images(group: Any) -> list[str]:
    """Return the names of all datasets of two or more axes; links are left out."""
    found: list[str] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim >= 2 and item.dtype.kind in "iuf":
            found.append(name)

    group.visititems(visit)
    return found


def _only_image(path: Path, file: Any) -> str:
    names = _images(file)
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{path} contains no dataset of two or more axes.")
    raise UsageError(
        f"{path} contains {len(names)} datasets, {', '.join(names[:5])}; name one of them: "
        f"{path}:/{names[0]}."
    )


def _sizes(dataset: Any) -> dict[str, float]:
    """Return the pixel sizes of an attribute that has those of Z, Y and X."""
    sizes: dict[str, float] = {}
    try:
        lengths = [float(length) for length in dataset.attrs["element_size_um"]]
    except (KeyError, TypeError, ValueError, OSError):
        return sizes
    for axis, length in zip("XYZ", lengths[::-1], strict=False):
        sizes |= calibrated(axis, length, "um")
    return sizes


def _named_axes(dataset: Any) -> str | None:
    """Return the axes that a dataset names: with ilastik's tags, or labels of its dimensions."""
    try:
        tags = json.loads(dataset.attrs["axistags"])["axes"]
        letters = [str(tag["key"])[:1].upper() for tag in tags]
    except (KeyError, TypeError, ValueError):
        letters = [str(dimension.label)[:1].upper() for dimension in dataset.dims]
    named = "".join(letters)
    fits = len(named) == dataset.ndim and named.count("Y") == named.count("X") == 1
    return named if fits else None
