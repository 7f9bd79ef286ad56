"""Folders of clean images, for training and for measuring."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from normeq.atomic import reason
from normeq.errors import FileError, InputError, NormeqError

# Images beyond this many bytes are kept in a temporary file, mapped into memory.
_IN_MEMORY = 4 * 2**30


@dataclass(frozen=True)
class Folder:
    """The images of a folder, (C, H, W), decoded once; integers keep their dtype."""

    images: list[NDArray[Any]]
    names: list[str]
    unreadable: int
    small: int

    def __str__(self) -> str:
        skipped = [
            f"{count} {reason}"
            for count, reason in ((self.unreadable, "unreadable"), (self.small, "too small"))
            if count
        ]
        return f"{len(self.images)} images" + (f" (skipped {', '.join(skipped)})" * bool(skipped))


def read_folder(
    path: Path, channels: int, smallest: int = 1, in_memory: int = _IN_MEMORY
) -> Folder:
    """Decode every image of a folder, skipping and counting those that cannot serve.

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
            f"'{path}' is not a folder of images that may be read ({reason(error)})."
        ) from error
    images: list[NDArray[Any]] = []
    names: list[str] = []
    unreadable, small = 0, 0
    overflow = _Overflow(in_memory)
    files = [file for file in listed if not file.name.startswith(".")]
    for file in tqdm(files, desc=f"reading {path.name}", delay=2, leave=False):
        try:
            decoded = list(_decoded(file, channels))
        except NormeqError:
            unreadable += 1
            continue
        for name, image in decoded:
            if min(image.shape[1:]) < smallest:
                small += 1
                continue
            images.append(overflow.keep(len(images), image))
            names.append(name)
    overflow.map(images)
    if not images:
        raise InputError(
            f"'{path}' holds no image to use: {unreadable} files are unreadable, and {small} "
            f"images are smaller than {smallest} pixels."
        )
    return Folder(images, names, unreadable, small)


def _decoded(path: Path, channels: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield name and pixels of every plane in a file."""
    from normeq.images import open_image

    with open_image(path) as source:
        for frame in range(source.frames):
            pixels = source.read(frame, 0, source.height)
            if source.alpha:
                pixels = pixels[:, :, :-1]
            name = path.name if source.frames == 1 else f"{path.name}[{frame}]"
            yield name, _with_channels(name, pixels, channels)


def _with_channels(name: str, image: NDArray[Any], channels: int) -> NDArray[Any]:
    """Turn rows, columns and samples into (C, H, W), gray or colour as asked."""
    if image.shape[2] not in (1, 3) or image.dtype.kind not in "uif":
        raise InputError(
            f"'{name}' has {image.shape[2]} samples of {image.dtype} a pixel; images are gray or "
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
    """Map the range of an integer type to [0, 1]; floating point is taken to be there already.

    Examples
    --------
    >>> import numpy as np
    >>> from normeq.folders import to_unit
    >>> to_unit(np.array([0, 65535], np.uint16))
    array([0., 1.], dtype=float32)
    """
    if image.dtype.kind in "ui":
        return image.astype(np.float32) / np.float32(np.iinfo(image.dtype).max)
    return image.astype(np.float32)
