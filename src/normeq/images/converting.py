"""Results in a format other than the image's own: written where nothing is lost, else refused."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from normeq.errors import InputError, UsageError
from normeq.images.formats import Format, format_of, result_extension
from normeq.images.png import chunk, encode_png, provenance_chunks
from normeq.images.source import Band, ImageFile
from normeq.images.tiff.ome_writer import OME_DTYPES, ome_axes, write_ome

Writer = Callable[[ImageFile, Path, Iterable[Band]], None]

_OME_TIFF = ".ome.tif"
# PNG counts whole pixels to the meter, which rounds 72 pixels to the inch by this much.
_ROUNDING = 2e-4
_MOST_PER_METER = 2**31 - 1


def can_be_created(path: Path, output: Path) -> bool:
    """Tell whether the result of an image can have the format of `output`, if nothing is lost."""
    wanted = format_of(output)
    return wanted is not None and (wanted == result_format(path) or wanted.name in _WRITERS)


def result_format(path: Path) -> Format | None:
    """Return the format in which the result of an image is written unless another is named."""
    return format_of(Path(f"result{result_extension(path)}"))


def writer_for(source: ImageFile, target: Path) -> Writer:
    """Return what writes the result of an image to a target; refuse to lose anything.

    Parameters
    ----------
    source
        The image. In its own format it is a copy with other pixels, all else kept.
    target
        Its extension names the format of the result.
    """
    wanted = format_of(target)
    if wanted is None or wanted == result_format(source.path):
        return type(source).write
    if wanted.name not in _WRITERS:
        own = result_extension(source.path)
        raise UsageError(
            f"{target}: normeq cannot create {wanted.name} files; the result can be {own}."
        )
    write, losses = _WRITERS[wanted.name]
    lost = [*_common_losses(source, wanted), *losses(source)]
    if lost:
        raise InputError(
            f"{source.path}: {target.suffix} would lose {', '.join(lost)}; the result can be "
            f"{result_extension(source.path)}."
        )
    return write


def _common_losses(source: ImageFile, wanted: Format) -> list[str]:
    """Say what no other format holds."""
    lost = [] if _is_taken_over(source, wanted) else list(source.unportable)
    if len(source.parts) > 1:
        lost.append(f"{len(source.parts) - 1} of its images")
    if (source.gain, source.offset) != (1.0, 0.0):
        lost.append(f"its units ({source.gain:g} * stored + {source.offset:g})")
    if source.blank is not None:
        lost.append(f"that {source.blank:g} means no value")
    if source.calibration.angles:
        lost.append("its place on the sky")
    return lost


def _is_taken_over(source: ImageFile, wanted: Format) -> bool:
    """Tell whether a vendor's metadata is taken over as far as it maps, as for OME-TIFF."""
    own = format_of(source.path)
    return own is not None and own.result == _OME_TIFF and wanted.name in ("TIFF", "Zarr")


# PNG ------------------------------------------------------------------------------------------


def _write_png(source: ImageFile, target: Path, bands: Iterable[Band]) -> None:
    shape = (source.height, source.width, source.samples)
    chunks = _pixel_size_chunk(source) + provenance_chunks(source)
    encode_png(target, shape, source.dtype, (band.pixels for band in bands), chunks)


def _pixel_size_chunk(source: ImageFile) -> bytes:
    sizes = source.calibration.sizes
    counts = [round(1e6 / sizes[axis]) for axis in "XY" if axis in sizes]
    return chunk(b"pHYs", struct.pack(">IIB", *counts, 1)) if len(counts) == 2 else b""


def _losses_of_png(source: ImageFile) -> list[str]:
    lost = []
    if source.dtype not in (np.uint8, np.uint16):
        lost.append(f"{source.dtype}, since it holds uint8 and uint16")
    if source.frames > 1:
        lost.append(f"axes {source.axes}, since it holds one plane")
    elif source.samples > 4:
        lost.append(f"{source.samples} samples, since it holds 4")
    sizes = source.calibration.sizes
    if set(sizes) not in (set(), {"X", "Y"}) or not all(map(_is_counted, sizes.values())):
        lost.append(f"the pixel size of {', '.join(sizes)}")
    if source.calibration.channels:
        lost.append("names of channels")
    return lost


def _is_counted(size: float) -> bool:
    """Tell whether pixels of this size, in micrometers, are a whole number to the meter."""
    count = round(1e6 / size)
    return 0 < count <= _MOST_PER_METER and abs(count * size / 1e6 - 1) <= _ROUNDING


# NPY ------------------------------------------------------------------------------------------


def _write_npy(source: ImageFile, target: Path, bands: Iterable[Band]) -> None:
    shape = (*source.leading, source.height, source.width)
    about = {"descr": source.dtype.str, "fortran_order": False, "shape": shape}
    with target.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, about)
        for band in bands:
            file.write(np.ascontiguousarray(band.pixels, source.dtype).tobytes())


def _losses_of_npy(source: ImageFile) -> list[str]:
    lost = []
    if source.axes.strip("Q") != "YX":
        lost.append(f"the names of its axes ({source.axes})")
    if source.calibration.sizes:
        lost.append("its pixel size")
    if source.calibration.channels:
        lost.append("names of channels")
    return lost


# OME-TIFF and OME-Zarr ------------------------------------------------------------------------


def _losses_of_ome(source: ImageFile) -> list[str]:
    ome_axes(source)  # which says itself what cannot be
    return ["its opacity"] if source.alpha else []


def _losses_of_ome_tiff(source: ImageFile) -> list[str]:
    lost = _losses_of_ome(source)
    if source.dtype.name not in OME_DTYPES:
        lost.append(f"{source.dtype}, which OME does not have")
    return lost


def write_new_ome_zarr(source: ImageFile, target: Path, bands: Iterable[Band]) -> None:
    """Write an image as OME-Zarr; the library is loaded when it is needed."""
    from normeq.images.zarr_writer import write_ome_zarr

    write_ome_zarr(source, target, bands)


_WRITERS: dict[str, tuple[Writer, Callable[[ImageFile], list[str]]]] = {
    "PNG": (_write_png, _losses_of_png),
    "NPY": (_write_npy, _losses_of_npy),
    "TIFF": (write_ome, _losses_of_ome_tiff),
    "Zarr": (write_new_ome_zarr, _losses_of_ome),
}
