"""Units of length and time as files name them, turned into those of `Calibration`."""

from __future__ import annotations

import math
from typing import Any

_MICROMETERS = (
    dict.fromkeys(("µm", "μm", "um", "micron", "microns", "micrometer", r"\u00B5m"), 1.0)
    | {"nm": 1e-3, "nanometer": 1e-3, "Å": 1e-4, "angstrom": 1e-4, "pm": 1e-6, "picometer": 1e-6}
    | {"mm": 1e3, "millimeter": 1e3, "cm": 1e4, "centimeter": 1e4, "m": 1e6, "meter": 1e6}
    | {"inch": 25400.0, "in": 25400.0}
)
_SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "ms": 1e-3, "millisecond": 1e-3, "us": 1e-6} | {
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}


def calibrated(axis: str, size: Any, unit: Any) -> dict[str, float]:
    """Return the size of a pixel along an axis, or nothing where it makes no sense.

    >>> calibrated("X", "65", "nm"), calibrated("T", 2, "min"), calibrated("X", 1, "pixel")
    ({'X': 0.065}, {'T': 120.0}, {})
    """
    factor = (_SECONDS if axis == "T" else _MICROMETERS).get(str(unit).strip("\0 "))
    try:
        length = float(size) * factor if factor is not None else math.nan
    except (TypeError, ValueError):
        return {}
    return {axis: length} if 0 < length < math.inf else {}
