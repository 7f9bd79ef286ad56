import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.image_samples import bands_of, copy, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

pydicom = pytest.importorskip("pydicom", reason="needs the dicom extra")
UID = pytest.importorskip("pydicom.uid")


def write(path: Path, image: np.ndarray, *, color: bool = False, **fields: Any) -> Any:
    """Write an image as a scanner does."""
    data = pydicom.Dataset()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = fields.pop("syntax", UID.ExplicitVRLittleEndian)
    data.SOPClassUID = data.file_meta.MediaStorageSOPClassUID = UID.CTImageStorage
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = UID.generate_uid()
    data.PatientName, data.PatientID, data.Modality = "Doe^Jane", "007", "CT"
    data.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    data.PixelSpacing = [0.5, 0.5]
    data.SamplesPerPixel = 3 if color else 1
    data.PhotometricInterpretation = "RGB" if color else "MONOCHROME2"
    if color:
        data.PlanarConfiguration = 0
    plane = image.shape[-3:-1] if color else image.shape[-2:]
    data.Rows, data.Columns = plane
    if image.ndim > 2 + color:
        data.NumberOfFrames = len(image)
    data.BitsAllocated = data.BitsStored = 8 * image.dtype.itemsize
    data.PixelRepresentation = int(image.dtype.kind == "i")
    for name, value in fields.items():
        setattr(data, name, value)
    data.HighBit = data.BitsStored - 1
    data.PixelData = image.tobytes() + b"\0" * (image.nbytes % 2)
    data["PixelData"].VR = "OW" if image.dtype.itemsize > 1 else "OB"
    data.save_as(path, enforce_file_format=True)
    return data


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize(
    ("shape", "color"), [((13, 17), False), ((3, 13, 17), False), ((13, 17, 3), True)]
)
@pytest.mark.parametrize("syntax", [UID.ExplicitVRLittleEndian, UID.ImplicitVRLittleEndian])
def test_pixels_survive_and_the_copy_is_a_derived_image(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], color: bool, syntax: str
) -> None:
    if color and dtype == "int16":
        pytest.skip("colours are not negative")
    image = sample(shape, dtype)
    before = write(tmp_path / "in.dcm", image, color=color, syntax=syntax)
    copy(tmp_path / "in.dcm", tmp_path / "out.dcm")
    np.testing.assert_array_equal(images.read(tmp_path / "in.dcm"), image)
    after = pydicom.dcmread(tmp_path / "out.dcm")
    np.testing.assert_array_equal(after.pixel_array, np.invert(image))
    assert after.file_meta.TransferSyntaxUID == syntax
    for name in ("PatientName", "PatientID", "PixelSpacing", "Modality", "SOPClassUID"):
        assert after[name].value == before[name].value
    assert after.SOPInstanceUID != before.SOPInstanceUID
    assert after.file_meta.MediaStorageSOPInstanceUID == after.SOPInstanceUID
    assert after.SourceImageSequence[0].ReferencedSOPInstanceUID == before.SOPInstanceUID
    assert after.ImageType == ["DERIVED", "PRIMARY", "AXIAL"]
    assert "normeq" in after.DerivationDescription


def test_units_padding_and_bits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    image = sample((8, 9), "int16")
    fields = {"RescaleSlope": 2.0, "RescaleIntercept": -1024.0, "BitsStored": 12}
    write(tmp_path / "in.dcm", image, PixelPaddingValue=-2000, **fields)
    with open_image(tmp_path / "in.dcm") as source, caplog.at_level(logging.INFO):
        assert (source.gain, source.offset, source.blank) == (2.0, -1024.0, -2000)
        source.write(tmp_path / "out.dcm", bands_of(source, 8, lambda pixels: pixels + 2000))
    after = pydicom.dcmread(tmp_path / "out.dcm").pixel_array
    np.testing.assert_array_equal(after, np.minimum(image + 2000, 2047))
    assert "clipped to -2048 to 2047" in caplog.text
    assert "Doe" not in caplog.text


def test_compressed_frames_are_written_uncompressed(tmp_path: Path) -> None:
    image = sample((3, 16, 18), "uint16")
    data = write(tmp_path / "plain.dcm", image)
    data.compress(UID.RLELossless, generate_instance_uid=False)
    data.save_as(tmp_path / "in.dcm", enforce_file_format=True)
    copy(tmp_path / "in.dcm", tmp_path / "out.dcm")
    after = pydicom.dcmread(tmp_path / "out.dcm")
    np.testing.assert_array_equal(after.pixel_array, np.invert(image))
    assert after.file_meta.TransferSyntaxUID == UID.ExplicitVRLittleEndian


def test_what_is_not_an_image_of_intensities_is_refused(tmp_path: Path) -> None:
    image = sample((8, 8), "uint8")
    write(tmp_path / "in.dcm", image, PhotometricInterpretation="PALETTE COLOR")
    with pytest.raises(InputError, match="PALETTE COLOR"):
        open_image(tmp_path / "in.dcm")
    write(tmp_path / "in.dcm", image, RescaleSlope=-1.0, RescaleIntercept=0.0)
    with pytest.raises(InputError, match="must be positive"):
        open_image(tmp_path / "in.dcm")
    write(tmp_path / "in.dcm", image, syntax=UID.DeflatedExplicitVRLittleEndian)
    with pytest.raises(InputError, match="Deflated"):
        open_image(tmp_path / "in.dcm")


def test_truncation_is_a_sentence(tmp_path: Path) -> None:
    write(tmp_path / "in.dcm", sample((64, 64), "uint16"))
    content = (tmp_path / "in.dcm").read_bytes()
    for length in (0, 100, 300, len(content) - 100):
        (tmp_path / "in.dcm").write_bytes(content[:length])
        with pytest.raises((FileError, InputError), match=r"in\.dcm"):
            images.read(tmp_path / "in.dcm")
