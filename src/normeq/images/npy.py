"""NumPy files: an array without names for its axes, whose planes are the last two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normeq.errors import reading
from normeq.images.axes import default_axes
from normeq.images.mapped import MappedFile
from normeq.images.source import Pixels


class NpySource(MappedFile):
    """An ``.npy`` file; dtype, byte order and memory order are kept."""

    format = "NPY"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            stored = np.lib.format.open_memmap(path, mode="r")
            fortran = stored.flags.f_contiguous and not stored.flags.c_contiguous
            super().__init__(
                path,
                stored.shape,
                stored.dtype,
                stored.offset,
                axes or default_axes(stored.shape),
                "F" if fortran else "C",
            )

    @property
    def unportable(self) -> Sequence[str]:
        """Nothing: an array and no more."""
        return ()


def create(path: Path, image: Pixels) -> None:
    """Write an array as a new NPY file."""
    with path.open("wb") as file:  # a name without .npy would get it from numpy
        np.save(file, image)
