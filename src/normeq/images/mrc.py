"""MRC, the format of electron microscopy: stacks (.mrcs), volumes and maps."""

from __future__ import annotations

from pathlib import Path

import mrcfile

from normeq.errors import reading
from normeq.images.mapped import MappedFile
from normeq.images.physical_units import calibrated
from normeq.images.source import Calibration

_HEADER, _MOST_LABELS = 1024, 10


class MrcSource(MappedFile):
    """An MRC file; its header and extended header are kept, its statistics renewed."""

    format = "MRC"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), mrcfile.mmap(path) as file:
            shape = tuple(int(length) for length in file.data.shape)
            # The images of a stack are not the slices of a volume.
            found = "QYX" if file.is_image_stack() else "QZYX"[-len(shape) :]
            super().__init__(
                path,
                shape,
                file.data.dtype,
                _HEADER + int(file.header.nsymbt),
                axes or found,
            )
            self._voxel = {axis: float(file.voxel_size[axis.lower()]) for axis in "XYZ"}

    @property
    def calibration(self) -> Calibration:
        """Size of a voxel, which the header gives in Ångström."""
        sizes: dict[str, float] = {}
        for axis in self.axes[::-1]:
            sizes |= calibrated(axis, self._voxel.get(axis), "angstrom")
        return Calibration(sizes)

    def finish(self, target: Path) -> None:
        """Renew minimum, maximum, mean and deviation in the header, and add a label."""
        with mrcfile.mmap(target, mode="r+") as file:
            file.update_header_stats()
            if self.provenance is not None and file.header.nlabl < _MOST_LABELS:
                file.add_label(self.provenance.as_line())
