"""TIFF, read by tiles and strips."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from normeq.errors import InputError, printable, reading, reason
from normeq.images.axes import same_axes
from normeq.images.source import Band, Calibration, ImageFile, Pixels, checked_dtype
from normeq.images.tiff.directories import check_directories
from normeq.images.tiff.ome_xml import check_places
from normeq.images.tiff.pixel_meaning import is_gray, is_intensity, nodata

log = logging.getLogger(__name__)

# Names of the images that a scanner of slides stores beside the slide.
_SMALL_IMAGES = {"thumbnail", "label", "macro", "overview"}
# Of an image in many files, at most this many are held open.
_OPEN_AT_ONCE = 64


class TiffSource(ImageFile):
    """A TIFF file that holds one image of any number of axes."""

    format = "TIFF"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format):
            self.tif = tifffile.TiffFile(path)
            self._others: list[Any] = []
            try:
                self._open(path, axes)
            except BaseException:
                self.tif.close()
                raise

    def _open(self, path: Path, axes: str | None) -> None:
        check_directories(self.tif)
        if self.tif.ome_metadata:
            check_places(path, self.tif.ome_metadata)
        self._follow_description(path)
        self.series = self._main_series(path)
        self.key: Any = self.series.keyframe
        found = self.series.axes
        if not found.endswith(("YX", "YXS")) or self.key.imagedepth > 1:
            raise InputError(
                f"{path} stores its axes as {found}, not as planes that end in YX or YXS; "
                "save it as an .npy file and name its axes there."
            )
        self._check_meaning(path)
        if len(self.series.levels) > 1:
            log.warning(
                "%s: the pyramid is left out, and only its full resolution is denoised", path
            )
        opacity = self.key.extrasamples[-1:] in ((1,), (2,))
        if opacity and not found.endswith("S"):
            raise InputError(
                f"{path} stores its opacity as a plane of its own, which is not to be denoised; "
                "save it with interleaved samples, or without opacity."
            )
        axes = same_axes(axes, found)
        dtype = checked_dtype(np.dtype(self.series.dtype), str(path))
        super().__init__(
            path,
            tuple(self.series.shape),
            dtype,
            axes,
            alpha=opacity,
            blank=nodata(self.key, dtype),
        )
        self._check_whole()

    def _main_series(self, path: Path) -> Any:
        """Return the image of the file, and name the thumbnails and labels that are left out."""
        first, *others = self.tif.series
        small = [
            series
            for series in others
            if series.name.lower() in _SMALL_IMAGES or series.keyframe.is_reduced
        ]
        if len(small) < len(others):
            raise InputError(
                f"{path} contains {len(self.tif.series)} images of different kinds; "
                "save the one to denoise as a file of its own."
            )
        if small:
            names = ", ".join(printable(series.name.lower()) or "a thumbnail" for series in small)
            log.warning("%s: left out of the result: %s", path, names)
        return first

    def _follow_description(self, path: Path) -> None:
        """Take the pages as they are where their description makes no sense."""
        try:
            _ = self.tif.series
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            log.warning("%s: its description is ignored (%s)", path, printable(reason(error)))
            self.tif.close()
            self.tif = tifffile.TiffFile(path, is_ome=False, is_imagej=False, is_shaped=False)

    def _check_meaning(self, path: Path) -> None:
        """Refuse pixels that are not intensities, and later files of an image in several."""
        key = self.key
        if not is_intensity(key):
            name = getattr(key.photometric, "name", key.photometric)
            raise InputError(
                f"{path} stores its pixels as {name}, not as gray, RGB or CMYK; convert it first."
            )
        if self.series.transform is not None:
            raise InputError(
                f"{path} stores {self.series.kind} values in an unsupported encoding; convert it."
            )
        first = Path(self.series.pages[0].parent.filehandle.path) if self.series.pages[0] else path
        if self.series.is_multifile and first.name != path.name:
            raise InputError(
                f"{path} is part of the image that starts in {first.name}: denoise that file "
                "instead."
            )

    def _check_whole(self) -> None:
        """Refuse a truncated file before any work is done."""
        with reading(self.path, self.format):
            absent, missing = self._absent_and_missing()
            if missing > 0:
                raise ValueError(f"the file is truncated: {missing} bytes are missing")
            promised = int((self.tif.imagej_metadata or {}).get("images", 1))
            if absent or promised > self.frames:
                absent = absent or promised - self.frames
                raise ValueError(f"{absent} of the planes that it describes are missing")
            self._check_codec()

    def _absent_and_missing(self) -> tuple[int, int]:
        """Return how many planes have no page, and how many bytes of pixels are not there."""
        if self.series.dataoffset is not None:  # one after the other: no page need be looked at
            end = self.series.dataoffset + self.pixels * self.dtype.itemsize
            return 0, end - self.tif.filehandle.size
        absent = missing = 0
        for page in self.series.pages:
            if page is None:
                absent += 1
                continue
            size = page.parent.filehandle.size
            for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
                missing = max(missing, offset + count - size)
        return absent, missing

    def _check_codec(self) -> None:
        try:
            if self.key.compression != 1:
                tifffile.TIFF.DECOMPRESSORS[self.key.compression]
            if self.key.predictor != 1:
                tifffile.TIFF.UNPREDICTORS[self.key.predictor]
        except KeyError as error:
            raise self._codec_is_missing() from error

    def _codec_is_missing(self) -> InputError:
        name = getattr(self.key.compression, "name", self.key.compression)
        return InputError(
            f"{self.path} is compressed with {name}, which needs the "
            "imagecodecs package: pip install 'normeq[codecs]'."
        )

    def close(self) -> None:
        """Close the file."""
        for file in (self.tif, *self._others):
            file.close()

    @property
    def is_color(self) -> bool:
        """Whether the samples of a pixel are colours, and not images of their own."""
        return super().is_color and not is_gray(self.key)

    @property
    def separate(self) -> int:
        """How many planes a page holds: samples that are stored one after the other."""
        return int(self.key.samplesperpixel) if self.key.planarconfig == 2 else 1

    @property
    def pages(self) -> int:
        """How many pages the image takes in a file with a directory for each."""
        return self.frames // self.separate

    def page(self, number: int) -> Any:
        """Return a page with all of its tags."""
        with reading(self.path, self.format):
            page: Any = self.series.pages[number]
            self.file_of(page)
            return page.aspage()

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels."""
        from normeq.images.tiff.calibration import calibration_of

        return calibration_of(self)

    @property
    def unportable(self) -> Sequence[str]:
        """What its tags and description say beside axes, pixel size and channels."""
        from normeq.images.tiff.portability import unportable

        return unportable(self)

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        with reading(self.path, self.format):
            row = self.width * self.samples
            if self.series.dataoffset is not None:
                offset = self.series.dataoffset + frame * self.height * row * self.dtype.itemsize
                return self._read_rows(self.key, offset, start, stop)
            page: Any = self.series.pages[frame // self.separate]
            if page.keyframe.is_final and len(page.dataoffsets) == 1:
                return self._read_rows(page, page.dataoffsets[0], start, stop)
            return self._read_segments(page, frame % self.separate, start, stop)

    def _read_rows(self, page: Any, offset: int, start: int, stop: int) -> Pixels:
        row = self.width * self.samples
        stored = self.file_of(page).read_array(
            page.parent.byteorder + self.dtype.char,
            count=(stop - start) * row,
            offset=offset + start * row * self.dtype.itemsize,
        )
        return self._native(stored).reshape(stop - start, self.width, self.samples)

    def _read_segments(self, page: Any, sample: int, start: int, stop: int) -> Pixels:
        key = page.keyframe
        height = key.tilelength if key.is_tiled else min(key.rowsperstrip, self.height)
        across = math.ceil(self.width / key.tilewidth) if key.is_tiled else 1
        down = math.ceil(self.height / height)
        out = np.full((stop - start, self.width, self.samples), self.blank or 0, self.dtype)
        for line in range(start // height, (stop - 1) // height + 1):
            for column in range(across):
                index = (sample * down + line) * across + column
                if page.databytecounts[index] == 0:
                    continue  # a sparse file: nothing stored means no value, or zeros
                try:
                    segment, (_, _, y, x, _), _ = key.decode(
                        self._segment(page, index), index, jpegtables=page.jpegtables
                    )
                except ImportError as error:
                    raise self._codec_is_missing() from error
                rows = slice(max(start, y), min(stop, y + segment.shape[1]))
                target = out[rows.start - start : rows.stop - start, x : x + segment.shape[2]]
                target[:] = self._native(
                    segment[0, rows.start - y : rows.stop - y, : target.shape[1]]
                )
        return out

    def file_of(self, page: Any) -> Any:
        """Return the open file of a page: an OME image may lie in several."""
        file = page.parent.filehandle
        if file.closed:
            file.open()
            self._others.append(file)
            if len(self._others) > _OPEN_AT_ONCE:
                self._others.pop(0).close()
        return file

    def _segment(self, page: Any, index: int) -> bytes:
        file = self.file_of(page)
        file.seek(page.dataoffsets[index])
        return bytes(file.read(page.databytecounts[index]))

    def _native(self, stored: Pixels) -> Pixels:
        return np.asarray(stored, dtype=self.dtype)

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a TIFF with the same pages, tags, byte order and, if lossless, compression."""
        from normeq.images.tiff.writer import write_copy

        write_copy(self, target, bands)


def create(path: Path, image: Pixels) -> None:
    """Write an array as a new TIFF, in colour if its last axis has 3 or 4 samples."""
    color = image.ndim > 2 and image.shape[-1] in (3, 4)
    tifffile.imwrite(path, image, photometric="rgb" if color else "minisblack")
