"""DICOM, single and multi-frame: the copy is a derived image; fields of the patient stay.

Stored numbers are denoised as they are: by equivariance that is the same as denoising the
physical values ``RescaleSlope * stored + RescaleIntercept``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from pydicom.filereader import read_file_meta_info
from pydicom.pixels.utils import pixel_array
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    generate_uid,
)

from normeq import __version__
from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.physical_units import calibrated
from normeq.images.source import Band, Calibration, ImageFile, Pixels, checked_dtype

log = logging.getLogger(__name__)

_COLORS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")
# What would be untrue of the copy.
_DROPPED = ("SmallestImagePixelValue", "LargestImagePixelValue", "IconImageSequence")


class DicomSource(ImageFile):
    """A DICOM file, gray or in colour; compressed frames are written uncompressed."""

    format = "DICOM"
    streams = False

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            encoding = read_file_meta_info(path).TransferSyntaxUID
            if encoding in (DeflatedExplicitVRLittleEndian, ExplicitVRBigEndian):
                raise InputError(
                    f"{path} is stored as {encoding.name}; convert it to "
                    "Explicit VR Little Endian first."
                )
            data = pydicom.dcmread(path)
            list(data.file_meta)  # decoded now, since the copy needs it
            self._check_meaning(path, data)
            frames = int(data.get("NumberOfFrames") or 1)
            samples = int(data.SamplesPerPixel)
            shape: tuple[int, ...] = (int(data.Rows), int(data.Columns))
            shape = shape if samples == 1 else (*shape, samples)
            found = "YX" if samples == 1 else "YXS"
            if frames > 1:
                shape, found = (frames, *shape), f"Q{found}"
            gain, offset = _units(path, data)
            super().__init__(
                path,
                shape,
                checked_dtype(_dtype(data), str(path)),
                same_axes(axes, found),
                gain=gain,
                offset=offset,
                blank=_padding(data),
            )
        self._data = data
        self._frame: tuple[int, Pixels] | None = None

    @property
    def calibration(self) -> Calibration:
        """Size of a pixel, distance of slices, and time between frames."""
        with reading(self.path, self.format):
            return _calibration(self._data)

    @staticmethod
    def _check_meaning(path: Path, data: Any) -> None:
        """Refuse what is not an image of intensities."""
        if "PixelData" not in data and "FloatPixelData" not in data:
            raise InputError(f"{path} contains no image.")
        kind = data.PhotometricInterpretation
        if kind not in ("MONOCHROME1", "MONOCHROME2", *_COLORS):
            raise InputError(f"{path} stores its pixels as {kind}; convert it to gray or RGB.")
        if data.BitsAllocated == 1:
            raise InputError(f"{path} contains a mask of one bit, which has no noise to remove.")

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame, which is decoded whole."""
        if self._frame is None or self._frame[0] != frame:
            with reading(self.path, self.format):
                pixels = pixel_array(self._data, index=frame)
                shape = (self.height, self.width, self.samples)
                self._frame = frame, np.asarray(pixels, self.dtype).reshape(shape)
        return self._frame[1][start:stop]

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a derived image: the same data set, with new pixels and a new identity."""
        shape = (self.frames, self.height, self.width, self.samples)
        pixels = np.empty(shape, self.dtype)
        for band in bands:
            rows = slice(band.start, band.start + len(band.pixels))
            pixels[band.frame, rows] = band.pixels
        if self.dtype.kind != "f":
            self._clip(pixels)
        with reading(self.path, self.format):
            # What comes after the pixels are signatures and padding, which the copy cannot have.
            data = pydicom.dcmread(self.path, stop_before_pixels=True)
        stored = pixels.astype(self.dtype.newbyteorder("<")).tobytes()
        if self.dtype.kind == "f":
            data.FloatPixelData = stored
        else:
            data.PixelData = stored + b"\0" * (len(stored) % 2)
            data["PixelData"].VR = "OW" if self.dtype.itemsize > 1 else "OB"
        if data.file_meta.TransferSyntaxUID.is_compressed:
            data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        if self.samples > 1:
            data.PhotometricInterpretation, data.PlanarConfiguration = "RGB", 0
        _derive(data)
        if self.provenance is not None:
            data.DerivationDescription = self.provenance.as_line()
        data.save_as(target, enforce_file_format=True)

    def _clip(self, pixels: Pixels) -> None:
        """Keep integers in the bits that are used of them."""
        bits = int(self._data.BitsStored) - (self.dtype.kind == "i")
        low, high = (-(2**bits) if self.dtype.kind == "i" else 0), 2**bits - 1
        beyond = np.count_nonzero((pixels < low) | (pixels > high))
        if beyond:
            log.info("%s: %d pixels clipped to %d to %d", self.path, beyond, low, high)
            np.clip(pixels, low, high, out=pixels)

    def close(self) -> None:
        """Drop the decoded frame."""
        self._frame = None


def _dtype(data: Any) -> np.dtype[Any]:
    if "FloatPixelData" in data:
        return np.dtype(np.float32)
    return np.dtype(f"{'i' if data.PixelRepresentation else 'u'}{int(data.BitsAllocated) // 8}")


def _units(path: Path, data: Any) -> tuple[float, float]:
    """Return slope and intercept, of the image or of all its frames."""
    groups = [data]
    for name in ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"):
        for group in data.get(name) or []:
            groups += list(group.get("PixelValueTransformationSequence") or [])
    found = {
        (float(group.RescaleSlope), float(group.get("RescaleIntercept") or 0.0))
        for group in groups
        if group.get("RescaleSlope") is not None
    }
    if len(found) > 1:
        raise InputError(f"{path} has units that differ from frame to frame; split it first.")
    gain, offset = found.pop() if found else (1.0, 0.0)
    if not (0 < gain < np.inf and np.isfinite(offset)):
        raise InputError(f"{path}: RescaleSlope is {gain:g}, but it must be positive.")
    return gain, offset


def _calibration(data: Any) -> Calibration:
    places = [data]
    for group in data.get("SharedFunctionalGroupsSequence") or []:
        places += list(group.get("PixelMeasuresSequence") or [])

    def first(*names: str) -> Any:
        found = (place.get(name) for name in names for place in places)
        return next((value for value in found if value is not None), None)

    sides = first("PixelSpacing", "ImagerPixelSpacing")
    down, across = sides if isinstance(sides, Sequence) and len(sides) == 2 else (None, None)
    between = first("SpacingBetweenSlices", "SliceThickness")
    return Calibration(
        calibrated("X", across, "mm")
        | calibrated("Y", down, "mm")
        | calibrated("Z", between, "mm")
        | calibrated("T", first("FrameTime"), "ms")
    )


def _padding(data: Any) -> float | None:
    value = data.get("PixelPaddingValue")
    return None if value is None else float(value)


def _derive(data: Any) -> None:
    """Give a data set an identity of its own, and say where it comes from."""
    if "SOPClassUID" in data and "SOPInstanceUID" in data:
        source = pydicom.Dataset()
        source.ReferencedSOPClassUID = data.SOPClassUID
        source.ReferencedSOPInstanceUID = data.SOPInstanceUID
        data.SourceImageSequence = [source]
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    kinds = [data.ImageType] if isinstance(data.get("ImageType"), str) else data.get("ImageType")
    data.ImageType = ["DERIVED", *list(kinds or ["", "PRIMARY"])[1:]]
    data.DerivationDescription = f"denoised by normeq {__version__}"
    for name in _DROPPED:
        if name in data:
            delattr(data, name)
