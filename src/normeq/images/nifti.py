"""NIfTI, the format of brain imaging; its planes are those of its first two axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np

from normeq.errors import InputError, reading
from normeq.images.gzipped import unpacked
from normeq.images.mapped import MappedFile
from normeq.images.physical_units import calibrated
from normeq.images.source import Calibration

# The fourth axis is time, what comes after it may be anything.
_AXES = "XYZTQQQ"


class NiftiSource(MappedFile):
    """A ``.nii`` or ``.nii.gz`` file, of version 1 or 2; header and extensions are kept.

    Stored numbers are denoised as they are: by equivariance that is the same as denoising the
    physical values ``scl_slope * stored + scl_inter``.
    """

    format = "NIfTI"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            file = unpacked(path, self)
            image: Any = nibabel.load(file)
            if type(image) not in (nibabel.Nifti1Image, nibabel.Nifti2Image):
                raise ValueError("the file does not start like a NIfTI file")
            header = image.header
            shape = tuple(int(length) for length in header.get_data_shape())
            if len(shape) < 2:
                raise InputError(f"{path} has shape {shape}, but an image has two or more axes.")
            gain, offset = float(image.dataobj.slope), float(image.dataobj.inter)
            if not 0 < gain < np.inf or not np.isfinite(offset):
                raise InputError(f"{path}: scl_slope is {gain:g}, but it must be positive.")
            super().__init__(
                path,
                shape,
                header.get_data_dtype(),
                int(image.dataobj.offset),
                axes or _AXES[: len(shape)],
                "F",
                file,
                gain=gain,
                offset=offset,
            )
            self._zooms = [float(zoom) for zoom in header.get_zooms()]
            self._units = header.get_xyzt_units()

    @property
    def calibration(self) -> Calibration:
        """Size of a voxel, and time between volumes."""
        length, time = ({"usec": "us", "msec": "ms"}.get(unit, unit) for unit in self._units)
        sizes: dict[str, float] = {}
        for axis, zoom in zip("XYZT", self._zooms, strict=False):
            sizes |= calibrated(axis, zoom, time if axis == "T" else length)
        return Calibration(sizes)
