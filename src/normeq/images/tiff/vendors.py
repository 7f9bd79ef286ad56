"""TIFFs of microscopes that are not written again (LSM, STK, SVS, ...): results are OME-TIFF."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from normeq.images.physical_units import calibrated
from normeq.images.source import Band, Calibration
from normeq.images.tiff.ome_writer import ome_axes, write_ome
from normeq.images.tiff.reader import TiffSource

_MPP = re.compile(r"\bMPP = ([0-9.]{1,20})")


class VendorTiffSource(TiffSource):
    """A TIFF with the metadata of a vendor; pixel sizes and channel names are kept."""

    def __init__(self, path: Path, axes: str | None = None) -> None:
        super().__init__(path, axes)
        ome_axes(self)  # which the result must have: said before any work

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels, where the vendor's metadata has them."""
        if self.tif.lsm_metadata:
            return _of_lsm(self.tif.lsm_metadata)
        if self.tif.stk_metadata:
            return _of_stk(self.tif.stk_metadata)
        found = _MPP.search(self.key.description)
        size = found.group(1) if found else None
        return Calibration(calibrated("X", size, "um") | calibrated("Y", size, "um"))

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write an OME-TIFF."""
        write_ome(self, target, bands)


def _of_lsm(about: dict[str, Any]) -> Calibration:
    sizes = calibrated("T", about.get("TimeIntervall"), "s")  # as tifffile spells it
    for axis in "XYZ":
        sizes |= calibrated(axis, about.get(f"VoxelSize{axis}"), "m")
    return Calibration(sizes, tuple(about.get("ChannelColors", {}).get("ColorNames", ())))


def _of_stk(about: dict[str, Any]) -> Calibration:
    unit, distances = about.get("CalibrationUnits"), list(about.get("ZDistance", ()))
    sizes = calibrated("X", about.get("XCalibration"), unit)
    sizes |= calibrated("Y", about.get("YCalibration"), unit)
    return Calibration(sizes | calibrated("Z", distances[-1] if len(distances) > 1 else None, unit))
