"""The formats: what each is called, by which extensions it is known, and what can be done with it.

To add a format, write a module that defines an `ImageFile`, and add a line to `FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from normeq.errors import InputError, UsageError
from normeq.images.addresses import Address
from normeq.images.source import ImageFile

# Files that make a folder a Zarr, of version 3 or 2.
ZARR_MARKERS = ("zarr.json", ".zarray", ".zgroup")


@dataclass(frozen=True)
class Format:
    """One kind of image file.

    Attributes
    ----------
    name
        As people call it.
    extensions
        In lower case, the usual one first.
    home
        Module and class of its `ImageFile`, ``module:class``; imported on first use.
    result
        Extension of denoised copies, where they are not written in this format.
    extra
        The extra of normeq that installs the library it needs.
    is_store
        Whether an image is a folder of files.
    has_parts
        Whether a file may hold several images, of which ``part`` names some.
    creates
        Whether its module has a function ``create(path, image)``, which `normeq.images.write` uses.
    """

    name: str
    extensions: tuple[str, ...]
    home: str
    result: str | None = None
    extra: str | None = None
    is_store: bool = False
    has_parts: bool = False
    creates: bool = False

    def open(self, path: Path, axes: str | None, part: str | None = None) -> ImageFile:
        """Open a file of this format."""
        if part is not None and not self.has_parts:
            raise UsageError(f"{path} is a single image: there is no {part!r} in it.")
        module, kind = self.home.split(":")
        try:
            opener = getattr(import_module(f"normeq.images.{module}"), kind)
        except ImportError as error:
            if self.extra is None:
                raise
            raise InputError(
                f"{path}: {self.name} needs the {error.name} package: "
                f"pip install 'normeq[{self.extra}]'."
            ) from error
        opened: ImageFile = opener(path, axes, part) if self.has_parts else opener(path, axes)
        return opened

    @property
    def create(self) -> Callable[[Path, Any], None]:
        """The function that writes an array as a new file."""
        module = import_module(f"normeq.images.{self.home.split(':')[0]}")
        create: Callable[[Path, Any], None] = module.create
        return create


FORMATS = (
    Format(
        "TIFF",
        (".tif", ".tiff", ".btf", ".tf8", ".ome.tif", ".ome.tiff", ".ome.btf", ".ome.tf8"),
        "tiff.reader:TiffSource",
        creates=True,
    ),
    Format(
        "vendor's TIFF",
        (".lsm", ".stk", ".svs"),
        "tiff.vendors:VendorTiffSource",
        result=".ome.tif",
    ),
    Format("PNG", (".png",), "png:PngSource", creates=True),
    Format("JPEG", (".jpg", ".jpeg"), "pictures:JpegSource", result=".png"),
    Format("WebP", (".webp",), "pictures:WebPSource", result=".png"),
    Format("BMP", (".bmp",), "pictures:BmpSource", result=".png"),
    Format("PNM", (".pgm", ".ppm", ".pnm"), "pnm:PnmSource"),
    Format(
        "JPEG 2000",
        (".jp2", ".j2k", ".jpx"),
        "jpeg2000:Jpeg2000Source",
        result=".png",
        extra="codecs",
    ),
    Format("NPY", (".npy",), "npy:NpySource", creates=True),
    Format("NPZ", (".npz",), "npz:NpzSource", has_parts=True),
    Format("Zarr", (".zarr", ".ome.zarr"), "zarr_store:ZarrSource", is_store=True),
    Format("zipped Zarr", (".zarr.zip", ".ome.zarr.zip", ".ozx"), "zarr_zip:ZippedZarrSource"),
    Format("OpenEXR", (".exr",), "exr:ExrSource", extra="exr"),
    Format("MRC", (".mrc", ".mrcs"), "mrc:MrcSource", extra="mrc"),
    Format("NIfTI", (".nii", ".nii.gz"), "nifti:NiftiSource", extra="nifti"),
    Format("LIF", (".lif",), "lif:LifSource", result=".ome.tif", extra="lif", has_parts=True),
    Format("CZI", (".czi",), "czi:CziSource", result=".ome.tif", extra="czi"),
    Format("ND2", (".nd2",), "nd2:Nd2Source", result=".ome.tif", extra="nd2"),
    Format("Imaris", (".ims",), "imaris:ImarisSource", result=".ome.tif", extra="hdf5"),
    Format("DICOM", (".dcm", ".dicom"), "dicom:DicomSource", extra="dicom"),
    Format("HDF5", (".h5", ".hdf5"), "hdf5:Hdf5Source", extra="hdf5", has_parts=True),
    Format(
        "FITS",
        (".fits", ".fit", ".fts", ".fits.gz", ".fit.gz", ".fts.gz"),
        "fits:FitsSource",
        has_parts=True,
    ),
    Format("compressed FITS", (".fits.fz",), "fits:FitsSource", result=".fits", has_parts=True),
)


def split_part(path: Path) -> tuple[Path, str | None]:
    """Split a path that names an image in a file into the file and the image.

    >>> file, part = split_part(Path("data.h5:/raw/images"))
    >>> file.name, part
    ('data.h5', '/raw/images')
    """
    text = str(path)
    if not os.path.lexists(path):
        for extension in (
            end for format in FORMATS if format.has_parts for end in format.extensions
        ):
            file, colon, part = text.partition(f"{extension}:")
            if colon and part:
                return Path(file + extension), part
    return path, None


def extension_of(path: Path) -> str:
    """Return the longest extension in a path's name that belongs to a format, or nothing.

    >>> extension_of(Path("cells.OME.tif")), extension_of(Path("folder.v2"))
    ('.OME.tif', '')
    """
    file = split_part(path)[0]
    name = file.name.lower()
    lengths = (
        len(extension)
        for format in FORMATS
        for extension in format.extensions
        if name.endswith(extension) and name != extension
    )
    return file.name[len(name) - max(lengths, default=0) :]


def format_of(path: Path) -> Format | None:
    """Return the format that a path's extension, or the folder there, stands for.

    >>> format_of(Path("cells.ome.tif")).name
    'TIFF'
    """
    extension = extension_of(path).lower()
    if not extension and (isinstance(path, Address) or (os.path.isdir(path) and is_zarr(path))):
        return next(format for format in FORMATS if format.is_store)
    return next((format for format in FORMATS if extension in format.extensions), None)


def result_extension(path: Path) -> str:
    """Return the extension of the denoised copy of an image.

    >>> result_extension(Path("cells.ome.tif")), result_extension(Path("photo.jpg"))
    ('.ome.tif', '.png')
    """
    format = format_of(path)
    if format is None:
        return ""
    # A Zarr may be a folder of any name.
    return format.result or extension_of(path) or format.extensions[0]


def is_store(path: Path) -> bool:
    """Tell whether a path, existing or not, stands for an image that is a folder of files."""
    format = format_of(path)
    return format is not None and format.is_store


def is_zarr(path: Path) -> bool:
    """Tell whether a folder is a Zarr array or group."""
    return any(os.path.isfile(path / marker) for marker in ZARR_MARKERS)
