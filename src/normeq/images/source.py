"""What every image format offers: a header, rows of pixels on demand, and a way to be rewritten.

An image is a sequence of *frames* (every axis but rows, columns and interleaved samples, in the
order of the file). Pixels travel as bands, ``(rows, width, samples)``, so that nothing needs
the whole image in memory.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from normeq.errors import InputError, reading
from normeq.images.axes import COLORS, checked_axes
from normeq.images.provenance import Provenance, digest

Pixels = NDArray[Any]


@dataclass(frozen=True)
class Band:
    """Some whole rows of one frame, ``pixels`` of shape ``(rows, width, samples)``."""

    frame: int
    start: int
    pixels: Pixels


@dataclass(frozen=True)
class Calibration:
    """What a format says of its pixels beside their values.

    Attributes
    ----------
    sizes
        Length of a pixel along X, Y and Z in micrometers, along T in seconds.
    channels
        Names of the channels.
    angles
        Size of a pixel along X and Y on the sky, in arc seconds.
    """

    sizes: Mapping[str, float] = field(default_factory=dict)
    channels: Sequence[str] = ()
    angles: Mapping[str, float] = field(default_factory=dict)


class ImageSource(ABC):
    """An image of which rows can be read.

    Parameters
    ----------
    shape
        As stored, one number for each letter of `axes`.
    dtype
        Of the stored pixels, in native byte order.
    axes
        One letter per axis; ``Y`` and ``X`` are the plane, ``S`` the samples of a pixel.
    alpha
        Whether the last sample is an opacity, which is not an image to denoise.
    gain, offset
        Units of a stored value: ``physical = gain * stored + offset``.
    blank
        The stored value that means "no value here", if there is one.
    """

    #: Whether samples may lie anywhere; elsewhere, an S that is not last is an axis like others.
    takes_any_order: ClassVar[bool] = False

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        axes: str,
        *,
        alpha: bool = False,
        gain: float = 1.0,
        offset: float = 0.0,
        blank: float | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype.newbyteorder("=")
        self.axes = checked_axes(axes, shape)
        self.alpha = alpha
        self.gain = gain
        self.offset = offset
        self.blank = blank
        self.height = shape[self.axes.index("Y")]
        self.width = shape[self.axes.index("X")]
        sizes = dict(zip(self.axes, shape, strict=True))
        has_samples = self.axes.endswith("YXS") or (self.takes_any_order and "S" in sizes)
        self.samples = sizes["S"] if has_samples else 1
        inner = "YXS" if has_samples else "YX"
        leading = [place for place, axis in enumerate(self.axes) if axis not in inner]
        self.leading = tuple(shape[place] for place in leading)
        self.leading_axes = "".join(self.axes[place] for place in leading)
        self.frames = math.prod(self.leading)
        #: Where the leading axes, rows, columns and, where there are any, samples are stored.
        self.places = [*leading, *(self.axes.index(axis) for axis in inner)]

    @property
    def pixels(self) -> int:
        """How many numbers the image holds."""
        return math.prod(self.shape)

    @property
    def planes(self) -> int:
        """How many planes there are to denoise."""
        return self.frames * (self.samples - self.alpha)

    @property
    def is_color(self) -> bool:
        """Whether the samples of a pixel are red, green and blue, perhaps with an opacity."""
        return self.samples - self.alpha == COLORS

    @property
    def band_rows(self) -> int | None:
        """Rows that a band must have if it is to be written on its own; None if that is open."""
        return None

    def physical(self, stored: Pixels) -> NDArray[np.float64]:
        """Return what stored values stand for, missing ones as NaN."""
        values = self.gain * stored.astype(np.float64) + self.offset
        if self.blank is not None:
            values[stored == self.blank] = np.nan
        return values

    @abstractmethod
    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows ``[start, stop)`` of a frame, of shape ``(stop - start, width, samples)``."""

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame; no others are read where they can be left."""
        return self.read(frame, rows.start, rows.stop)[:, columns]


class ImageFile(ImageSource):
    """An opened file, of which only the header has been read.

    Parameters
    ----------
    path
        The file or folder.
    shape, dtype, axes, about
        See `ImageSource`.
    """

    format: ClassVar[str]
    #: Whether rows are read from the file when asked for, or the image is decoded whole.
    streams: ClassVar[bool] = True
    #: What an image is called in a file that holds several.
    title: str = ""
    #: What `write` notes in the result, where the format has a place for it.
    provenance: Provenance | None = None

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], axes: str, **about: Any
    ) -> None:
        super().__init__(shape, dtype, axes, **about)
        self.path = path

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes and names of channels, as far as the file has them."""
        return Calibration()

    def digest(self) -> str:
        """Return SHA-256 of the file."""
        return digest(self.path)

    def fingerprint(self) -> object:
        """Return plain data that changes when the file does, without reading it."""
        inside = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        files = [(file, file.stat()) for file in inside if file.is_file()]
        times = [
            (str(file.relative_to(self.path)), about.st_size, about.st_mtime_ns)
            for file, about in files
        ]
        return [str(self.path.resolve()), times]

    @property
    def unportable(self) -> Sequence[str]:
        """What the file says beside pixels and calibration, and another format would lose."""
        return ("its header",)

    @property
    def parts(self) -> Sequence[ImageFile]:
        """The images of the file, this one first; each writes its pixels to the same target."""
        return (self,)

    @abstractmethod
    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a copy of this image to `target`, its pixels taken from `bands` in order."""

    def complete(self, target: Path) -> None:
        """Finish a target, after all parts have been written to it."""
        return

    def close(self) -> None:
        """Close the file but keep its header; `read` opens it again."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class DecodedFile(ImageFile):
    """A file that can only be decoded whole, which is done on the first call of `read`."""

    streams = False
    _decoded: Pixels | None = None

    @abstractmethod
    def decode(self) -> Pixels:
        """Return all pixels of the file, frames first, samples last."""

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        if self._decoded is None:
            with reading(self.path, self.format):
                self._decoded = self.decode().reshape(
                    self.frames, self.height, self.width, self.samples
                )
        return self._decoded[frame, start:stop]

    def close(self) -> None:
        """Drop the decoded pixels."""
        self._decoded = None


class IndexedSource(ImageSource):
    """An image behind anything that is indexed like an array, its axes in any order."""

    takes_any_order = True

    @abstractmethod
    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of a frame, which alone are read."""

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        return self.read_region(frame, slice(start, stop), slice(0, self.width))

    def index(
        self, frame: int, rows: slice, columns: slice = slice(None)
    ) -> tuple[int | slice, ...]:
        """Return what selects rows and columns of a frame in the stored array."""
        position = iter(np.unravel_index(frame, self.leading) if self.leading else ())
        place = {"Y": rows, "X": columns, "S": slice(None)}
        return tuple(place[axis] if axis in place else int(next(position)) for axis in self.axes)

    def to_plane(self, selected: Pixels) -> Pixels:
        """Turn what `index` selects into ``(rows, width, samples)``."""
        plane = np.transpose(selected, self._plane_places)
        return plane if "S" in self.axes else plane[..., np.newaxis]

    def from_plane(self, pixels: Pixels) -> Pixels:
        """Turn ``(rows, width, samples)`` into what `index` selects."""
        plane = pixels if "S" in self.axes else pixels[..., 0]
        return np.transpose(plane, np.argsort(self._plane_places))

    @property
    def _plane_places(self) -> list[int]:
        """Where rows, columns and samples are in what `index` selects."""
        stored = self.places[len(self.leading) :]
        return [sorted(stored).index(place) for place in stored]


def checked_dtype(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    """Return `dtype` if images of it can be denoised, else raise a sentence."""
    if dtype.kind == "b":
        raise InputError(
            f"{what} contains booleans, which have no noise to remove: convert it to uint8 or "
            "float32."
        )
    if dtype.kind == "c":
        raise InputError(f"{what} is complex: denoise its real and imaginary parts one by one.")
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise InputError(
            f"{what} contains {dtype} values, not integers or floats of up to 64 bits."
        )
    return dtype
