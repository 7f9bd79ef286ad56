"""Tile-compressed FITS (.fits.fz): unpacked by astropy into a plain file, as funpack does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from normeq._support import memory
from normeq.errors import InputError
from normeq.images.fits_header import Unit, read_units


def unpack(path: Path, target: Path) -> None:
    """Write a plain copy of a file with compressed images; stored numbers stay as they are."""
    try:
        from astropy.io import fits
    except ImportError as error:
        raise InputError(
            f"{path}: compressed FITS needs the astropy package: pip install 'normeq[fits]'."
        ) from error
    for unit in read_units(path):
        if unit.is_compressed_image:
            _check_size(path, unit)
    with fits.open(path, do_not_scale_image_data=True) as packed:
        units = [_plain(unit, fits) for unit in packed]
        if len(units) > 1 and isinstance(units[0], fits.PrimaryHDU) and units[0].data is None:
            units[0].header["EXTEND"] = True
        fits.HDUList(units).writeto(target, overwrite=True)


def _check_size(path: Path, unit: Unit) -> None:
    """Refuse images that do not fit into memory, where astropy puts them."""
    values = unit.values
    sides = [values.get(f"ZNAXIS{axis}") for axis in range(1, 1 + _small(values.get("ZNAXIS")))]
    if not sides or not all(type(side) is int and side > 0 for side in sides):
        raise ValueError(f"the size of its unit {unit.name} makes no sense")
    needed = 3 * math.prod(sides) * abs(_small(values.get("ZBITPIX"))) // 8  # type: ignore[arg-type]
    if needed > memory.available():
        raise InputError(
            f"{path} needs {needed / 2**30:.1f} GB of memory to be unpacked, more than is "
            "available."
        )


def _small(value: Any) -> int:
    return value if type(value) is int and abs(value) <= 999 else 0


def _plain(unit: Any, fits: Any) -> Any:
    """Return a unit with its image uncompressed."""
    if not isinstance(unit, fits.CompImageHDU):
        return unit
    data, header = unit.data, unit.header.copy()
    for keyword in ("CHECKSUM", "DATASUM"):  # which are those of the table
        header.remove(keyword, ignore_missing=True)
    plain = fits.ImageHDU(data, header, do_not_scale_image_data=True)
    for keyword in ("BSCALE", "BZERO"):  # which astropy drops, though the numbers are as stored
        if keyword in header:
            plain.header[keyword] = header[keyword]
    return plain
