"""A small file of every kind that normeq reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
import zarr
from helpers.image_samples import sample
from helpers.vendor_files import (
    write_czi,
    write_imaris,
    write_lif,
    write_lsm,
    write_nd2,
    write_stk,
    write_svs,
)

from normeq import images

STACK = sample((3, 20, 24), "uint16")
#: The first line of the journal among the samples.
JOURNAL_KEY = "9f86d081884c7d65"
PICTURE = sample((20, 24), "uint8")


def _fits(path: Path) -> None:
    from astropy.io import fits

    units = [fits.PrimaryHDU(STACK.astype(np.int16)), fits.ImageHDU(STACK[0].astype(np.float32))]
    fits.HDUList(units).writeto(path, checksum=True)


def _compressed_fits(path: Path) -> None:
    from astropy.io import fits

    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(STACK[0].astype(np.int16))]).writeto(path)


def _zipped_zarr(path: Path) -> None:
    with zarr.storage.ZipStore(path, mode="w") as store:
        zarr.create_array(store, data=STACK, chunks=(1, 20, 24))


def _jpeg(path: Path) -> None:
    from PIL import Image

    exif = Image.Exif()
    exif[0x010F] = "maker"
    Image.fromarray(PICTURE).save(path, dpi=(300, 300), exif=exif)


def _ome_zarr(path: Path) -> None:
    group = zarr.create_group(path, zarr_format=2)
    group.attrs["multiscales"] = [
        {"axes": ["z", "y", "x"], "datasets": [{"path": "0"}, {"path": "1"}]}
    ]
    group.create_array("0", data=STACK, chunks=(1, 20, 24))
    group.create_array("1", data=STACK[:, ::2, ::2], chunks=(1, 10, 12))


def _weights(path: Path) -> None:
    import normeq

    normeq.save(normeq.create("fdncnn", width=4, depth=3), path, {"data": "none"})


def _recipe(path: Path) -> None:
    from normeq.training import recipe as module
    from normeq.training import shipped_recipes

    name = next(iter(shipped_recipes()))
    path.write_bytes((Path(module.__file__).parent / "recipes" / f"{name}.toml").read_bytes())


def _journal(path: Path) -> None:
    path.write_text(f"{JOURNAL_KEY}\n0 0 done\n0 512 done\n1 0 done\n")


def _tiff(**options: Any) -> Callable[[Path], None]:
    about = {"axes": "ZYX"} | options.pop("metadata", {})
    return lambda path: tifffile.imwrite(path, STACK, metadata=about, **options)


def _mrc(path: Path) -> None:
    import mrcfile

    mrcfile.new(path, STACK).close()


def _nifti(path: Path) -> None:
    import nibabel

    nibabel.save(nibabel.Nifti1Image(STACK, np.eye(4)), path)


def _dicom(path: Path) -> None:
    from pydicom import Dataset
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.SOPClassUID = data.file_meta.MediaStorageSOPClassUID = CTImageStorage
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.NumberOfFrames, data.Rows, data.Columns = STACK.shape
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PixelRepresentation = 15, 0
    data.PixelData = STACK.tobytes()
    data.save_as(path, enforce_file_format=True)


def _hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("raw/stack", data=STACK, chunks=(1, 20, 24), compression="gzip")


def _jpeg2000(path: Path) -> None:
    import imagecodecs

    path.write_bytes(imagecodecs.jpeg2k_encode(PICTURE, level=0, codecformat="jp2"))


def _picture(path: Path) -> None:
    from PIL import Image

    Image.fromarray(np.stack([PICTURE] * 3, axis=-1)).save(path)


def _exr(path: Path) -> None:
    import OpenEXR

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"Y": STACK[0].astype(np.float32)}).write(str(path))


#: How to write each, by its name.
SAMPLES: dict[str, Callable[[Path], None]] = {
    "in.tif": _tiff(photometric="minisblack", resolution=(5.5, 5.5)),
    "deflate.tif": _tiff(photometric="minisblack", compression="zlib", tile=(16, 16)),
    "big.btf": _tiff(photometric="minisblack", bigtiff=True, byteorder=">"),
    "imagej.tif": _tiff(imagej=True, resolution=(3, 3), metadata={"unit": "um", "Info": "7"}),
    "in.ome.tif": _tiff(metadata={"PhysicalSizeX": 0.2, "Channel": {"Name": ["GFP"]}}),
    "in.png": lambda path: images.write(path, PICTURE),
    "in.jpg": _jpeg,
    "in.npy": lambda path: images.write(path, STACK),
    "in.zarr": lambda path: zarr.create_array(path, data=STACK, chunks=(1, 20, 24)),
    "in.ome.zarr": _ome_zarr,
    "in.fits": _fits,
    "in.fits.gz": _fits,
    "in.fits.fz": _compressed_fits,
    "in.zarr.zip": _zipped_zarr,
    "in.mrc": _mrc,
    "in.nii": _nifti,
    "in.nii.gz": _nifti,
    "in.dcm": _dicom,
    "in.h5": _hdf5,
    "in.npz": lambda path: np.savez(path, STACK),
    "in.jp2": _jpeg2000,
    "in.webp": _picture,
    "in.bmp": _picture,
    "in.ppm": _picture,
    "in.exr": _exr,
    "in.lif": lambda path: write_lif(path, cells=STACK),
    "in.czi": lambda path: write_czi(path, STACK[np.newaxis], compression=6),
    "in.nd2": lambda path: write_nd2(path, STACK[:, np.newaxis]),
    "in.ims": lambda path: write_imaris(path, STACK[np.newaxis, np.newaxis]),
    "in.lsm": lambda path: write_lsm(path, STACK),
    "in.stk": lambda path: write_stk(path, STACK),
    "in.svs": lambda path: write_svs(path, np.stack([PICTURE] * 3, axis=-1)),
    "in.safetensors": _weights,
    "in.journal": _journal,
    "in.toml": _recipe,
}


def write_sample(path: Path) -> None:
    """Write the file of this name."""
    SAMPLES[path.name](path)
