"""TIFFs of microscopes that are not written again (LSM, STK, SVS, ...): results are OME-TIFF."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from normeq.images.source import Band, Calibration
from normeq.images.tiff.ome_writer import ome_axes, write_ome
from normeq.images.tiff.reader import TiffSource

_MICROMETERS_PER_METER = 1e6
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
        sizes = {axis: float(found.group(1)) for axis in "XY"} if found else {}
        return Calibration(sizes)

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write an OME-TIFF."""
        write_ome(self, target, bands)


def _of_lsm(about: dict[str, Any]) -> Calibration:
    sizes = {
        axis: float(about[f"VoxelSize{axis}"]) * _MICROMETERS_PER_METER
        for axis in "XYZ"
        if about.get(f"VoxelSize{axis}")
    }
    if about.get("TimeIntervall"):  # as tifffile spells it
        sizes["T"] = float(about["TimeIntervall"])
    return Calibration(sizes, tuple(about.get("ChannelColors", {}).get("ColorNames", ())))


def _of_stk(about: dict[str, Any]) -> Calibration:
    if about.get("CalibrationUnits") not in ("um", "µm", "microns"):
        return Calibration()
    distances = [abs(float(distance)) for distance in about.get("ZDistance", ())]
    steps = {"X": about.get("XCalibration"), "Y": about.get("YCalibration")}
    steps["Z"] = distances[-1] if len(distances) > 1 else None
    return Calibration({axis: float(step) for axis, step in steps.items() if step})
