"""The size of a pixel, from the world coordinates (WCS) that a FITS header gives."""

from __future__ import annotations

import math
from collections.abc import Mapping

from normeq.images.fits_header import Value
from normeq.images.physical_units import calibrated
from normeq.images.source import Calibration

_ARC_SECONDS = {"deg": 3600.0, "arcmin": 60.0, "arcsec": 1.0, "mas": 1e-3} | {
    "rad": math.degrees(1) * 3600
}


def pixel_size(values: Mapping[str, Value]) -> Calibration:
    """Return how far one step along columns and rows leads, in space or on the sky.

    Examples
    --------
    >>> cards = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CDELT1": -1e-4, "CDELT2": 1e-4}
    >>> {axis: round(size, 6) for axis, size in pixel_size(cards).angles.items()}
    {'X': 0.36, 'Y': 0.36}
    """
    sizes: dict[str, float] = {}
    angles: dict[str, float] = {}
    for axis, column in (("X", 1), ("Y", 2)):
        unit = str(values.get(f"CUNIT{column}", "")).strip()
        step = _step(values, column)
        # Celestial coordinates are in degrees unless they say otherwise.
        celestial = str(values.get(f"CTYPE{column}", ""))[:4] in ("RA--", "DEC-", "GLON", "GLAT")
        factor = _ARC_SECONDS.get(unit or ("deg" if celestial else ""))
        if factor is not None and 0 < step * factor < math.inf:
            angles[axis] = step * factor
        else:
            sizes |= calibrated(axis, step, unit)
    return Calibration(sizes, angles=angles)


def _step(values: Mapping[str, Value], column: int) -> float:
    """Return the length of a column of the matrix from pixels to coordinates."""
    with_matrix = any(f"CD{row}_{column}" in values for row in (1, 2))
    steps = [
        _number(values, f"CD{row}_{column}", 0.0)
        if with_matrix
        else _number(values, f"CDELT{row}", 0.0)
        * _number(values, f"PC{row}_{column}", float(row == column))
        for row in (1, 2)
    ]
    return math.hypot(*steps)


def _number(values: Mapping[str, Value], keyword: str, default: float) -> float:
    value = values.get(keyword, default)
    return float(value) if type(value) in (int, float) else default
