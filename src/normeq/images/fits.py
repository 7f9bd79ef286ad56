"""FITS: the pixels of its images are replaced in a copy of the file, all else stays.

Stored numbers are denoised as they are: by equivariance that is the same as denoising the
physical values ``BSCALE * stored + BZERO``, and the header remains true to the bit.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from normeq.errors import InputError, UsageError, reading
from normeq.images.axes import default_axes
from normeq.images.fits_compressed import unpack
from normeq.images.fits_coordinates import pixel_size
from normeq.images.fits_header import Unit, Value, add_history, read_units, renew_checksums
from normeq.images.gzipped import temporary_file, unpacked
from normeq.images.mapped import MappedFile
from normeq.images.source import Calibration, ImageFile

log = logging.getLogger(__name__)

_DTYPES = {8: ">u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
# Extensions that say how good the pixels of an image are: they are not images with noise.
_NOT_INTENSITIES = {
    "BPM", "DQ", "ERR", "ERROR", "FLAG", "FLAGS", "IVAR", "MASK", "STAT", "STD", "STDDEV",
    "UNCERT", "VAR", "VARIANCE", "WEIGHT", "WGT", "WHT", "WT",
}  # fmt: skip


class FitsImage(MappedFile):
    """One image of a FITS file."""

    format = "FITS"

    def __init__(self, path: Path, file: Path, unit: Unit, axes: str | None) -> None:
        values = unit.values
        stored = _DTYPES.get(_number(values, "BITPIX", 0))
        if stored is None:
            raise ValueError(f"BITPIX is {values['BITPIX']!r}")
        self.unit, self.title = unit, unit.name
        gain = float(_number(values, "BSCALE", 1.0))
        if not 0 < gain < np.inf:
            raise InputError(f"{path}: BSCALE is {gain:g}, but it must be positive.")
        super().__init__(
            path,
            unit.shape,
            np.dtype(stored),
            unit.data,
            axes or default_axes(unit.shape),
            file=file,
            gain=gain,
            offset=float(_number(values, "BZERO", 0.0)),
            blank=_number(values, "BLANK", None) if stored[1] != "f" else None,
        )

    @property
    def calibration(self) -> Calibration:
        """Size of a pixel, on the sky or in the plane, from the coordinates of the header."""
        return pixel_size(self.unit.values)


class FitsSource(FitsImage):
    """A FITS file; all of its images are denoised, or those that are named.

    Parameters
    ----------
    path, axes
        The file, and its axes in place of what is usual; they hold for images of as many axes.
    part
        Names or numbers of units, separated by commas.
    """

    def __init__(self, path: Path, axes: str | None = None, part: str | None = None) -> None:
        with reading(path, self.format):
            file = self._plain(path)
            units = read_units(file)
            chosen = _named(path, units, part) if part else _all_images(path, units)
            first, *others = (
                FitsImage(path, file, unit, axes if axes and len(axes) == len(unit.shape) else None)
                for unit in chosen
            )
            super().__init__(path, file, first.unit, axes)
        self._others: list[FitsImage] = others

    def _plain(self, path: Path) -> Path:
        """Return a plain file with the content of `path`, which may be packed in two ways."""
        if path.suffix.lower() != ".fz":
            return unpacked(path, self)
        plain = temporary_file(self, ".fits")
        unpack(path, plain)
        return plain

    def complete(self, target: Path) -> None:
        """Note the provenance, and renew checksums."""
        numbers = [part.unit.number for part in (self, *self._others)]
        if self.provenance is not None:
            for number in numbers:
                add_history(target, number, self.provenance.as_line(), self.provenance.as_json())
        units = read_units(target)
        for number in numbers:
            renew_checksums(target, units[number])

    @property
    def parts(self) -> Sequence[ImageFile]:
        """All images of the file that are denoised."""
        return (self, *self._others)


def _all_images(path: Path, units: list[Unit]) -> list[Unit]:
    images = [unit for unit in units if unit.is_image]
    chosen = [unit for unit in images if unit.name.upper() not in _NOT_INTENSITIES]
    compressed = [unit.name for unit in units if unit.is_compressed_image]
    if not chosen and compressed:
        raise InputError(
            f"{path}: its images are compressed; rename it to .fits.fz, and it will be unpacked."
        )
    if not chosen:
        raise InputError(f"{path} contains no image of two or more axes.")
    left = [unit.name for unit in images if unit not in chosen] + compressed
    if left:
        log.warning("%s: HDUs that are not denoised: %s", path, ", ".join(left))
    if len(chosen) > 1:
        log.info("%s: HDUs that are denoised: %s", path, ", ".join(unit.name for unit in chosen))
    return chosen


def _named(path: Path, units: list[Unit], part: str) -> list[Unit]:
    """Return the units of these names or numbers."""
    chosen = []
    for name in (name.strip() for name in part.split(",")):
        found = [
            unit for unit in units if name.upper() == unit.name.upper() or name == str(unit.number)
        ]
        if not found or not found[0].is_image:
            known = ", ".join(unit.name for unit in units if unit.is_image) or "none"
            raise UsageError(f"{path}: {name!r} is not one of its images, which are {known}.")
        chosen += found[:1]
    return chosen


def _number(values: Any, keyword: str, default: Any) -> Any:
    """Return a number of a header; a card that holds something else does not count."""
    value: Value | None = values.get(keyword, default)
    return value if type(value) in (int, float) else default
