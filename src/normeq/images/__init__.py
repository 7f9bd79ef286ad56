"""Image files: one interface over TIFF, PNG, JPEG, NPY, Zarr and FITS.

`open_image` reads the header alone; pixels come and go in bands of rows. `read` gives the whole
array.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq._support import memory
from normeq.errors import FileError, InputError, UsageError, reading
from normeq.images.source import Band, ImageFile, is_zarr

__all__ = ["FORMATS", "MAX_PIXELS", "Band", "ImageFile", "format_of", "open_image", "read", "write"]

# Extensions of each format.
FORMATS = {
    "tiff": (".tif", ".tiff", ".btf", ".tf8"),
    "png": (".png",),
    "jpeg": (".jpg", ".jpeg"),
    "npy": (".npy",),
    "zarr": (".zarr",),
    "fits": (".fits", ".fit", ".fts"),
}
MAX_PIXELS = 10**11


def format_of(path: Path) -> str | None:
    """Return the name of the format that a path's extension, or folder, stands for.

    >>> format_of(Path("cells.ome.tif"))
    'tiff'
    """
    suffix = path.suffix.lower()
    known = next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)
    return "zarr" if known is None and os.path.isdir(path) and is_zarr(path) else known


def open_image(
    path: str | os.PathLike[str],
    axes: str | None = None,
    max_pixels: int = MAX_PIXELS,
) -> ImageFile:
    """Open an image; only its header is read.

    Parameters
    ----------
    path
        A file, or the folder of a Zarr.
    axes
        One letter per axis, in place of what the file says.
    max_pixels
        An image of more is refused.
    """
    path = Path(path)
    format = format_of(path)
    if not os.path.exists(path):
        raise FileError(f"{path}: there is no such file, or none that may be read.")
    if format is None:
        known = " ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
        raise FileError(f"{path}: has no known extension; known are {known}.")
    with reading(path, format):
        source: ImageFile = _opener(format)(path, axes)
    try:
        _check_size(source, max_pixels)
    except InputError:
        source.close()
        raise
    return source


def _opener(format: str) -> Any:
    if format == "tiff":
        from normeq.images.tiff import TiffSource

        return TiffSource
    if format == "npy":
        from normeq.images.npy import NpySource

        return NpySource
    if format == "zarr":
        from normeq.images.zarr_store import ZarrSource

        return ZarrSource
    if format == "fits":
        from normeq.images.fits import FitsSource

        return FitsSource
    from normeq.images import raster

    return raster.PngSource if format == "png" else raster.JpegSource


def _check_size(source: ImageFile, max_pixels: int) -> None:
    if source.pixels == 0:
        raise InputError(f"{source.path}: is empty, of shape {source.shape}.")
    if source.pixels > max_pixels:
        raise InputError(
            f"{source.path}: has {source.pixels} pixels, more than the {max_pixels} allowed: "
            "raise --max-pixels if that is right."
        )
    needed = 3 * source.pixels * source.dtype.itemsize  # encoded, decoded, and a copy
    if not source.streams and needed > memory.available():
        raise InputError(
            f"{source.path}: needs {needed / 2**30:.1f} GB of memory to be decoded, more than "
            "there is; save it as TIFF or Zarr, which are read in parts."
        )


def read(path: str | os.PathLike[str], axes: str | None = None) -> NDArray[Any]:
    """Read a whole image, in the shape and dtype that it is stored in."""
    with open_image(path, axes) as source:
        order = [axis for axis in range(len(source.shape)) if source.axes[axis] not in "YX"]
        frames = [source.read(frame, 0, source.height) for frame in range(source.frames)]
    stacked = np.stack(frames).reshape(*source.leading, source.height, source.width, source.samples)
    if source.samples > 1:
        return stacked
    rows, columns = source.axes.index("Y"), source.axes.index("X")
    return np.transpose(stacked[..., 0], np.argsort([*order, rows, columns]))


def write(path: str | os.PathLike[str], image: NDArray[Any]) -> None:
    """Write a new PNG, TIFF or NPY, whole or not at all.

    Parameters
    ----------
    path
        Its extension chooses the format.
    image
        For PNG: uint8 or uint16, of shape ``(height, width)`` or with 1 to 4 samples last.
    """
    from normeq._support.atomic import replacing

    path = Path(path)
    format = format_of(path)
    if format not in ("png", "tiff", "npy"):
        raise UsageError(f"{path}: a new image can be a .png, .tif or .npy file.")
    with replacing(path) as temporary:
        if format == "npy":
            with temporary.open("wb") as file:
                np.save(file, image)
        elif format == "tiff":
            import tifffile

            color = image.ndim > 2 and image.shape[-1] in (3, 4)
            tifffile.imwrite(temporary, image, photometric="rgb" if color else "minisblack")
        else:
            from normeq.images.raster import encode_png

            if image.dtype not in (np.uint8, np.uint16):
                raise InputError(f"{path}: PNG takes uint8 or uint16, not {image.dtype}.")
            pixels = image[..., np.newaxis] if image.ndim == 2 else image
            height, width, samples = pixels.shape
            encode_png(temporary, (height, width, samples), image.dtype, [pixels])
