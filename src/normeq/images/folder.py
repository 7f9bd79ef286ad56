"""Folders of clean images, for training and for measuring."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from normeq.errors import FileError, InputError, NormeqError, reason
from normeq.images import open_image
from normeq.images.source import ImageSource

# Images beyond this many bytes are kept in a temporary file, mapped into memory.
_IN_MEMORY = 4 * 2**30

# How far rounding may carry a floating point image beyond black and white.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class Folder:
    """The images of a folder, (C, H, W), decoded once; integers keep their dtype.

    Parameters
    ----------
    images, names
        Pixels and name of each.
    skipped
        How many could not be used, by reason.
    """

    images: list[NDArray[Any]]
    names: list[str]
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        skipped = f" (skipped: {_counted(self.skipped)})" if self.skipped else ""
        count = len(self.images)
        return f"{count} image{'' if count == 1 else 's'}{skipped}"


def read_folder(
    path: Path, channels: int, smallest: int = 1, in_memory: int = _IN_MEMORY
) -> Folder:
    """Decode every image of a folder, skipping and counting those that cannot be used.

    Black is 0, and white the largest integer of a type or, in floating point, 1. Images that go
    beyond are skipped: a noise level would mean something else in them.

    Parameters
    ----------
    path
        Folder; its files are taken in the order of their names, hidden ones left out. Every plane
        of a stack is an image.
    channels
        Colour images become gray for 1 (luma of ITU-R BT.601); gray ones are repeated for 3.
    smallest
        Images with a shorter side are skipped.
    in_memory
        Bytes of images to hold in memory; the others wait decoded in a temporary file.
    """
    try:
        listed = sorted(path.iterdir())
    except OSError as error:
        raise FileError(
            f"'{path}' is not a readable folder of images ({reason(error)})."
        ) from error
    images: list[NDArray[Any]] = []
    names: list[str] = []
    skipped: Counter[str] = Counter()
    overflow = _Overflow(in_memory)
    files = [file for file in listed if not file.name.startswith(".")]
    for file in tqdm(files, desc=f"reading {path.name}", delay=2, leave=False):
        try:
            decoded = list(_decoded(file, channels))
        except NormeqError:
            skipped["unreadable"] += 1
            continue
        for name, image in decoded:
            if min(image.shape[1:]) < smallest:
                skipped[f"smaller than {smallest} pixels"] += 1
                continue
            if not _is_black_to_white(image):
                skipped["not between 0 and 1"] += 1
                continue
            images.append(overflow.keep(len(images), image))
            names.append(name)
    overflow.map(images)
    if not images:
        found = _counted(skipped) or "it is empty"
        raise InputError(f"'{path}' contains no usable image ({found}).")
    return Folder(images, names, dict(skipped))


def _counted(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in skipped.items())


def _decoded(path: Path, channels: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield name and pixels of every plane in a file."""
    with open_image(path) as source:
        for frame in range(source.frames):
            pixels = _in_units(source.read(frame, 0, source.height), source)
            if source.alpha:
                pixels = pixels[:, :, :-1]
            name = path.name if source.frames == 1 else f"{path.name}[{frame}]"
            yield name, _with_channels(name, pixels, channels)


def _in_units(stored: NDArray[Any], source: ImageSource) -> NDArray[Any]:
    """Return what stored values stand for: as they are where they stand for themselves."""
    if (source.gain, source.offset, source.blank) == (1, 0, None):
        return stored
    values = source.physical(stored)
    if source.gain != 1 or np.isnan(values).any():
        return values
    if source.offset == 0:
        return stored
    if stored.dtype.kind == "i" and source.offset == -np.iinfo(stored.dtype).min:
        return values.astype(f"u{stored.dtype.itemsize}")  # how FITS stores unsigned integers
    return values


def _is_black_to_white(image: NDArray[Any]) -> bool:
    """Whether `to_unit` brings an image between 0 and 1."""
    if image.dtype.kind in "ui":
        return bool(image.min() >= 0)
    return bool(image.min() >= -_ROUNDING and image.max() <= 1 + _ROUNDING)


def _with_channels(name: str, image: NDArray[Any], channels: int) -> NDArray[Any]:
    """Turn rows, columns and samples into (C, H, W), gray or colour as asked."""
    if image.shape[2] not in (1, 3) or image.dtype.kind not in "uif":
        raise InputError(
            f"'{name}' has {image.shape[2]} samples of {image.dtype} per pixel; images are gray or "
            "colour, of integers or floating point."
        )
    if channels == 1 and image.shape[2] == 3:
        image = _luma(image)
    elif channels == 3 and image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def _luma(image: NDArray[Any]) -> NDArray[Any]:
    gray: NDArray[Any] = image @ np.array([[0.299], [0.587], [0.114]])
    # Rounded for integers, as the gray versions of the published test sets were.
    if image.dtype.kind in "ui":
        gray = np.rint(gray)
    return gray.astype(image.dtype)


class _Overflow:
    """Images beyond a number of bytes, in a temporary file that vanishes with the last of them."""

    def __init__(self, in_memory: int) -> None:
        self._left = in_memory
        self._file: IO[bytes] | None = None
        self._moved: dict[int, tuple[int, NDArray[Any]]] = {}

    def keep(self, position: int, image: NDArray[Any]) -> NDArray[Any]:
        """Return the image itself, or an empty one of its kind after moving it to the file."""
        self._left -= image.nbytes
        if self._left >= 0:
            return image
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="normeq-")  # noqa: SIM115  # lives with us
        offset = self._file.tell()
        self._file.write(image.tobytes())
        # A broadcast zero has shape and dtype, and takes no memory.
        stand_in = np.broadcast_to(np.zeros((), image.dtype), image.shape)
        self._moved[position] = (offset, stand_in)
        return stand_in

    def map(self, images: list[NDArray[Any]]) -> None:
        """Put views of the file, mapped once, in place of the images that were moved there."""
        if self._file is None:
            return
        self._file.flush()
        mapped = np.memmap(self._file, np.uint8, "r")
        self._file.close()  # the mapping holds on to it
        for position, (offset, like) in self._moved.items():
            stored = mapped[offset : offset + like.nbytes]
            images[position] = stored.view(like.dtype).reshape(like.shape)


def to_unit(image: NDArray[Any]) -> NDArray[np.float32]:
    """Map the largest integer of a type to 1; floating point is taken to be in [0, 1] already.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.images.folder import to_unit
    >>> to_unit(np.array([0, 65535], np.uint16))
    array([0., 1.], dtype=float32)
    """
    if image.dtype.kind in "ui":
        return image.astype(np.float32) / np.float32(np.iinfo(image.dtype).max)
    return image.astype(np.float32)
