"""Folders of clean images, for training and for measuring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.errors import FileError, InputError, NormeqError


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
        return f"{len(self.images)} images" + (f" ({', '.join(skipped)})" if skipped else "")


def read_folder(path: Path, channels: int, smallest: int = 1) -> Folder:
    """Decode every image of a folder, skipping and counting those that cannot serve.

    Parameters
    ----------
    path : Path
        Folder; its files are taken in the order of their names, hidden ones left out.
    channels : {1, 3}
        Colour images become gray for 1 (luma of ITU-R BT.601); gray ones are repeated for 3.
    smallest : int
        Images with a shorter side are skipped.
    """
    if not path.is_dir():
        raise FileError(f"'{path}' is not a folder of images.")
    images, names, unreadable, small = [], [], 0, 0
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        try:
            image = read_image(file, channels)
        except NormeqError:
            unreadable += 1
            continue
        if min(image.shape[1:]) < smallest:
            small += 1
            continue
        images.append(image)
        names.append(file.name)
    if not images:
        raise InputError(
            f"'{path}' holds no image to use: {unreadable} files are unreadable, and {small} are "
            f"smaller than {smallest} pixels."
        )
    return Folder(images, names, unreadable, small)


def read_image(path: Path, channels: int) -> NDArray[Any]:
    """Read an image file as (C, H, W), gray or colour as asked."""
    import imageio.v3 as iio

    try:
        image = np.asarray(iio.imread(path))
    except Exception as error:  # each decoder has exceptions of its own
        raise FileError(f"'{path}' is not a readable image ({error}).") from error
    if image.ndim == 3 and image.shape[2] in (2, 4):
        image = image[:, :, :-1]
    if image.ndim == 2:
        image = image[:, :, None]
    if image.ndim != 3 or image.shape[2] not in (1, 3) or image.dtype.kind not in "uif":
        raise InputError(f"'{path}' of shape {image.shape} is neither a gray nor a colour image.")
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


def to_unit(image: NDArray[Any]) -> NDArray[np.float32]:
    """Map the range of an integer type to [0, 1]; floating point is taken to be there already."""
    if image.dtype.kind in "ui":
        return image.astype(np.float32) / np.float32(np.iinfo(image.dtype).max)
    return image.astype(np.float32)
