"""The Darmstadt Noise Dataset: raw photographs with their noise, and files for its benchmark.

The set has ``info.mat`` (noise parameters and 20 boxes for each of 50 images) and
``images_raw/0001.mat`` and so on, all HDF5 as MATLAB writes it, with axes reversed. The truth is
not public: denoised boxes are sent in, one file for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq._support.atomic import replacing
from normeq.errors import FileError, UsageError, reading

Floats = NDArray[np.float64]

_FORMAT = "a file of the Darmstadt Noise Dataset"


@dataclass(frozen=True)
class RawImage:
    """A raw photograph, a Bayer mosaic with black at 0 and white at 1.

    Attributes
    ----------
    number
        From 1 on, as in the names of the files.
    pixels
        The mosaic.
    boxes
        Rows and columns of the parts that are compared.
    gain, base
        Of its noise: the variance of a pixel of mean y is ``gain · y + base``.
    """

    number: int
    pixels: Floats
    boxes: tuple[tuple[slice, slice], ...]
    gain: float
    base: float


def read_darmstadt(folder: Path) -> Iterator[RawImage]:
    """Yield the raw photographs one after the other.

    Parameters
    ----------
    folder
        With ``info.mat`` and ``images_raw/``.
    """
    h5py = _h5py()
    path = folder / "info.mat"
    with reading(path, _FORMAT), h5py.File(path, "r", locking=False) as file:
        info = file["info"]
        about = [_about(info, index) for index in range(info["boundingboxes"].shape[-1])]
    for number, (boxes, gain, base) in enumerate(about, 1):
        path = folder / "images_raw" / f"{number:04d}.mat"
        with reading(path, _FORMAT), h5py.File(path, "r", locking=False) as file:
            pixels: Floats = np.asarray(file["Inoisy"], dtype=np.float64).T
        for rows, columns in boxes:
            inside = 0 <= rows.start < rows.stop <= pixels.shape[0]
            if not (inside and 0 <= columns.start < columns.stop <= pixels.shape[1]):
                raise FileError(f"{folder / 'info.mat'}: a box lies outside image {number}.")
        yield RawImage(number, pixels, boxes, gain, base)


def _about(info: Any, index: int) -> tuple[tuple[tuple[slice, slice], ...], float, float]:
    """Return boxes and noise of one image, by the references that MATLAB stores."""
    corners = np.asarray(info[info["boundingboxes"][0, index]]).T
    boxes = tuple(
        (slice(int(top) - 1, int(bottom)), slice(int(left) - 1, int(right)))
        for top, left, bottom, right in corners
    )
    noise = info[info["nlf"][0, index]]
    return boxes, float(noise["a"][0, 0]), float(noise["b"][0, 0])


def denoised_boxes(
    image: RawImage, denoise: Callable[[Floats, float, float], Floats]
) -> list[NDArray[np.float32]]:
    """Denoise the boxes of a photograph, the four colours of the mosaic one by one.

    Parameters
    ----------
    image
        The photograph.
    denoise
        A function of a plane, and of gain and base of its noise.
    """
    results = []
    for rows, columns in image.boxes:
        mosaic = image.pixels[rows, columns]
        result = np.empty(mosaic.shape, np.float32)
        for first in (0, 1):
            for second in (0, 1):
                part = (slice(first, None, 2), slice(second, None, 2))
                result[part] = denoise(mosaic[part], image.gain, image.base)
        results.append(result)
    return results


def write_submission(folder: Path, number: int, boxes: Sequence[NDArray[np.float32]]) -> Path:
    """Write the denoised boxes of one photograph as the benchmark wants them."""
    from scipy.io import savemat

    cells = np.empty(len(boxes), dtype=object)
    for index, box in enumerate(boxes):
        cells[index] = box
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:04d}.mat"
    with replacing(path) as temporary, temporary.open("wb") as file:
        savemat(file, {"Idenoised": cells, "israw": True, "eval_version": "1.0"})
    return path


def _h5py() -> Any:
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise UsageError(
            "the Darmstadt Noise Dataset needs h5py: pip install 'normeq[hdf5]'."
        ) from error
    return h5py
