"""Equivariance on every way that an image can take: each format, tiles, bands, stacks, pipes.

    python benchmarks/paths.py

denoises an image y and 2y + 100 with the default model, blind, and compares the second result with
what follows from the first. The error is the largest difference, relative to the spread of the
image for floating point, in grey levels for whole numbers, where rounding alone can give 1. It goes
to docs/data/paths.csv and docs/reliability.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import torch
import zarr
from numpy.typing import NDArray
from pages import DATA, DOCS, fill, table
from skimage.data import camera

import normeq
import normeq.denoising.tiles
from normeq import images
from normeq._support.tables import write_csv

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.vendor_files import (
    write_czi,
    write_imaris,
    write_lif,
    write_lsm,
    write_nd2,
    write_stk,
    write_svs,
)

CSV, PAGE = DATA / "paths.csv", DOCS / "reliability.md"
GAIN, OFFSET = 2, 100
Image = NDArray[Any]


def noisy(dtype: str) -> Image:
    """Return a stack of two planes whose values, doubled and shifted, still fit into uint8."""
    clean = camera()[100:164, 200:256].astype(float) / 4
    noise = np.random.default_rng(0).normal(0, 4, (2, *clean.shape))
    return np.rint(clean + noise + 4).clip(0, 77).astype(dtype)


# Writers --------------------------------------------------------------------------------------


def tiff(path: Path, stack: Image) -> None:
    tifffile.imwrite(path, stack, photometric="minisblack")


def fits(path: Path, stack: Image) -> None:
    from astropy.io import fits

    fits.PrimaryHDU(stack).writeto(path)


def compressed_fits(path: Path, stack: Image) -> None:
    from astropy.io import fits

    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(stack)]).writeto(path)


def mrc(path: Path, stack: Image) -> None:
    import mrcfile

    mrcfile.new(path, stack).close()


def nifti(path: Path, stack: Image) -> None:
    import nibabel

    nibabel.save(nibabel.Nifti1Image(stack.T, np.eye(4)), path)


def hdf5(path: Path, stack: Image) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["stack"] = stack


def exr(path: Path, stack: Image) -> None:
    import OpenEXR

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"Y": stack[0]}).write(str(path))


def zipped(path: Path, stack: Image) -> None:
    with zarr.storage.ZipStore(path, mode="w") as store:
        zarr.create_array(store, data=stack)


def dicom(path: Path, stack: Image) -> None:
    import pydicom
    from helpers.file_samples import write_sample

    write_sample(path)
    data = pydicom.dcmread(path)
    data.NumberOfFrames, data.Rows, data.Columns = stack.shape
    data.PixelData = stack.tobytes()
    data.save_as(path)


def picture(path: Path, stack: Image) -> None:
    from PIL import Image as Pillow

    Pillow.fromarray(stack[0]).save(path)


def jpeg2000(path: Path, stack: Image) -> None:
    import imagecodecs

    path.write_bytes(imagecodecs.jpeg2k_encode(stack[0], level=0, codecformat="jp2"))


def webp(path: Path, stack: Image) -> None:
    from PIL import Image as Pillow

    Pillow.fromarray(np.stack([stack[0]] * 3, axis=-1)).save(path, lossless=True)


#: Writer and dtype of each format; JPEG, which is lossy, cannot hold 2y + 100.
FORMATS: dict[str, tuple[Callable[[Path, Image], None], str]] = {
    ".tif": (tiff, "float32"),
    ".ome.tif": (tiff, "float32"),
    ".npy": (np.save, "float32"),
    ".npz": (np.savez, "float32"),
    ".zarr": (lambda path, stack: zarr.create_array(path, data=stack), "float32"),
    ".zarr.zip": (zipped, "float32"),
    ".fits": (fits, "float32"),
    ".fits.gz": (fits, "float32"),
    ".fits.fz": (compressed_fits, "int16"),
    ".mrc": (mrc, "float32"),
    ".nii": (nifti, "float32"),
    ".nii.gz": (nifti, "float32"),
    ".h5": (hdf5, "float32"),
    ".exr": (exr, "float32"),
    ".dcm": (dicom, "uint16"),
    ".png": (picture, "uint8"),
    ".bmp": (picture, "uint8"),
    ".pgm": (picture, "uint8"),
    ".webp": (webp, "uint8"),
    ".jp2": (jpeg2000, "uint8"),
    ".czi": (lambda path, stack: write_czi(path, stack[np.newaxis]), "float32"),
    ".nd2": (lambda path, stack: write_nd2(path, stack[:, np.newaxis]), "uint16"),
    ".lif": (lambda path, stack: write_lif(path, cells=stack), "uint16"),
    ".ims": (lambda path, stack: write_imaris(path, stack[np.newaxis, np.newaxis]), "float32"),
    ".lsm": (write_lsm, "uint16"),
    ".stk": (write_stk, "uint16"),
    ".svs": (lambda path, stack: write_svs(path, np.stack([stack[0]] * 3, -1)), "uint8"),
}


def through_file(extension: str, stack: Image, folder: Path) -> Image:
    """Write a file, denoise it, and read the result."""
    path = folder / f"in{extension}"
    FORMATS[extension][0](path, stack)
    target = folder / f"out{images.result_extension(path)}"
    [outcome] = normeq.denoise_files(path, target, noise="gaussian", bayer="none")
    if outcome.error:
        raise SystemExit(outcome.error)
    return images.read(target)


def piped(stack: Image, folder: Path) -> Image:
    np.save(folder / "in.npy", stack)
    command = [sys.executable, "-m", "normeq", "denoise", "-", "--noise", "gaussian", "--quiet"]
    with (folder / "in.npy").open("rb") as given, (folder / "out.npy").open("wb") as taken:
        subprocess.run([*command, "--bayer", "none"], stdin=given, stdout=taken, check=True)
    return np.asarray(np.load(folder / "out.npy"))


def in_bands(stack: Image, folder: Path) -> Image:
    """Denoise a file of which 16 rows are in memory at a time."""
    before = normeq.denoising.tiles._BAND_BYTES
    normeq.denoising.tiles._BAND_BYTES = 16 * stack.shape[-1] * stack.itemsize
    try:
        return through_file(".tif", stack, folder)
    finally:
        normeq.denoising.tiles._BAND_BYTES = before


def array(stack: Image, **options: Any) -> Image:
    clean: Image = normeq.denoise(stack, noise="gaussian", bayer="none", **options)
    return clean


PATHS: dict[str, Callable[[Image, Path], Image]] = {
    "array": lambda stack, folder: array(stack[0]),
    "array, a stack": lambda stack, folder: array(stack, axes="ZYX"),
    "array, tiles of 24": lambda stack, folder: array(stack, axes="ZYX", tile=24),
    "tensor": lambda stack, folder: np.asarray(array(torch.from_numpy(stack), axes="ZYX")),
    "file in bands": in_bands,
    "pipe": piped,
}


def error(denoise: Callable[[Image, Path], Image], dtype: str) -> float:
    stack = noisy(dtype)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = denoise(stack, Path(one)).astype(np.float64)
        second = denoise((GAIN * stack + OFFSET).astype(dtype), Path(other)).astype(np.float64)
    worst = float(np.abs(second - (GAIN * first + OFFSET)).max())
    return worst / float((GAIN * stack).std()) if dtype == "float32" else worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, default=CSV)
    options = parser.parse_args()
    ways: list[tuple[str, Callable[[Image, Path], Image], str]] = [
        (name, path, "float32") for name, path in PATHS.items()
    ]
    for extension, (_, dtype) in FORMATS.items():

        def through(stack: Image, folder: Path, extension: str = extension) -> Image:
            return through_file(extension, stack, folder)

        ways.append((extension, through, dtype))
    rows: list[dict[str, Any]] = []
    for name, denoise, dtype in ways:
        measured = f"{error(denoise, dtype):.2g}"
        unit = "of the spread" if dtype == "float32" else "grey levels"
        rows.append({"way": name, "dtype": dtype, "error": measured, "unit": unit})
        print(rows[-1], flush=True)
    write_csv(options.csv, rows)
    if options.csv == CSV:
        fill(PAGE, "paths", table(CSV))


if __name__ == "__main__":
    main()
