"""FITS: the pixels of the first image are replaced in a copy of the file, all else stays.

Stored numbers are denoised as they are: by equivariance that is the same as denoising the
physical values ``BSCALE * stored + BZERO``, and the header remains true to the bit.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from astropy.io import fits

from normeq._support.atomic import reserve
from normeq.errors import InputError, reading
from normeq.images.axes import default_axes
from normeq.images.source import Band, ImageFile, IndexedSource, Pixels, checked_dtype

_DTYPES = {8: ">u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}


class FitsSource(IndexedSource, ImageFile):
    """A FITS file, of which the first image of two or more axes is the image."""

    format = "FITS"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with (
            reading(path, self.format),
            warnings.catch_warnings(action="ignore"),  # what matters of them is checked below
            path.open("rb") as file,
            fits.open(file, lazy_load_hdus=False) as units,
        ):
            unit = next((hdu for hdu in units if _is_image(hdu)), None)
            if unit is None:
                raise InputError(
                    f"{path}: holds no plain image of two or more axes (compressed images: "
                    "funpack them first)."
                )
            header = unit.header
            self._place = int(unit.fileinfo()["datLoc"])
            self._checksum = "CHECKSUM" in header or "DATASUM" in header
            self._unit = units.index(unit)
        self._stored = np.dtype(_DTYPES[header["BITPIX"]])
        count = header["NAXIS"]
        shape = tuple(int(header[f"NAXIS{axis}"]) for axis in range(count, 0, -1))
        gain = float(header.get("BSCALE", 1.0))
        if gain <= 0:
            raise InputError(f"{path}: BSCALE is {gain:g}, but a unit must be positive.")
        super().__init__(
            path,
            shape,
            checked_dtype(self._stored, str(path)),
            axes or default_axes(shape),
            gain=gain,
            offset=float(header.get("BZERO", 0.0)),
            blank=header.get("BLANK") if self._stored.kind in "iu" else None,
        )
        missing = self._place + self.pixels * self._stored.itemsize - path.stat().st_size
        if missing > 0:
            with reading(path, self.format):
                raise ValueError(f"the file is truncated: {missing} bytes are missing")

    def _map(self, path: Path, mode: Any) -> np.memmap[Any, Any]:
        # Mapped anew for each band: a mapping that stays counts every page it has touched.
        return np.memmap(path, self._stored, mode, offset=self._place, shape=self.shape)

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame, as stored."""
        with reading(self.path, self.format):
            stored = self._map(self.path, "r")[self.index(frame, slice(start, stop))]
            return self.to_plane(np.array(stored, dtype=self.dtype))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a copy of the file whose image has new pixels, and renew its checksum if any."""
        shutil.copyfile(self.path, target)
        reserve(target)
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            image = self._map(target, "r+")
            image[self.index(band.frame, rows)] = self.from_plane(band.pixels)
        if self._checksum:
            with (
                reading(self.path, self.format),
                # A card that is not of the standard is no reason to lose the result.
                warnings.catch_warnings(action="ignore"),
                fits.open(
                    target, mode="update", do_not_scale_image_data=True, output_verify="ignore"
                ) as units,
            ):
                units[self._unit].add_checksum()


def _is_image(unit: Any) -> bool:
    plain = isinstance(unit, fits.PrimaryHDU | fits.ImageHDU)
    return plain and not isinstance(unit, fits.CompImageHDU) and unit.header["NAXIS"] >= 2
