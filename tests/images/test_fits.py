from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.errors import FileError, InputError
from normeq.images import open_image

fits = pytest.importorskip("astropy.io.fits", reason="needs the fits extra")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(13, 17), (2, 3, 13, 17)])
def test_pixels_and_header_survive(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    image = sample(shape, dtype)
    unit = fits.PrimaryHDU(image)
    unit.header["CTYPE1"] = "RA---TAN"
    unit.header["CRVAL1"] = 202.4682
    unit.header["HISTORY"] = "flat-fielded"
    table = fits.BinTableHDU.from_columns([fits.Column("a", "D", array=[1.0, 2.0])])
    fits.HDUList([unit, table, fits.ImageHDU(image, name="DQ")]).writeto(tmp_path / "in.fits")
    copy(tmp_path / "in.fits", tmp_path / "out.fits")
    np.testing.assert_array_equal(images.read(tmp_path / "in.fits"), image)
    with fits.open(tmp_path / "in.fits") as before, fits.open(tmp_path / "out.fits") as after:
        np.testing.assert_array_equal(after[0].data, inverted(image))
        assert [unit.header for unit in after] == [unit.header for unit in before]
        np.testing.assert_array_equal(after["DQ"].data, image)
        np.testing.assert_array_equal(after[1].data["a"], [1.0, 2.0])


def test_unsigned_and_scaled_integers_keep_their_units(tmp_path: Path) -> None:
    fits.PrimaryHDU(sample((8, 9), "uint16")).writeto(tmp_path / "unsigned.fits")
    with open_image(tmp_path / "unsigned.fits") as source:
        assert (source.dtype, source.gain, source.offset) == (np.int16, 1.0, 32768.0)
    unit = fits.PrimaryHDU(sample((8, 9), "int16"))
    unit.header["BSCALE"], unit.header["BZERO"], unit.header["BLANK"] = 0.5, 10.0, -1
    unit.writeto(tmp_path / "scaled.fits")
    with open_image(tmp_path / "scaled.fits") as source:
        assert (source.gain, source.offset, source.blank) == (0.5, 10.0, -1)


def test_the_image_may_be_in_an_extension(tmp_path: Path) -> None:
    image = sample((8, 9), "float32")
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(image)]).writeto(tmp_path / "in.fits")
    copy(tmp_path / "in.fits", tmp_path / "out.fits")
    np.testing.assert_array_equal(fits.getdata(tmp_path / "out.fits"), -image)


def test_checksums_are_renewed(tmp_path: Path) -> None:
    fits.PrimaryHDU(sample((8, 9), "float32")).writeto(tmp_path / "in.fits", checksum=True)
    copy(tmp_path / "in.fits", tmp_path / "out.fits")
    with fits.open(tmp_path / "out.fits", checksum=True) as after:  # a wrong one is a warning
        assert after[0].verify_checksum() == 1
        assert after[0].verify_datasum() == 1


def test_cards_that_are_not_of_the_standard_do_no_harm(tmp_path: Path) -> None:
    fits.PrimaryHDU(sample((8, 9), "float32")).writeto(tmp_path / "in.fits", checksum=True)
    content = (tmp_path / "in.fits").read_bytes()
    odd = b"observer= 'somebody'".ljust(80)
    place = content.index(b"END".ljust(80))
    changed = content[:place] + odd + b"END".ljust(80) + content[place + 160 :]
    (tmp_path / "in.fits").write_bytes(changed)
    copy(tmp_path / "in.fits", tmp_path / "out.fits")
    assert fits.getheader(tmp_path / "out.fits")["OBSERVER"] == "somebody"
    np.testing.assert_array_equal(
        fits.getdata(tmp_path / "out.fits"), -images.read(tmp_path / "in.fits")
    )


def test_no_image_and_a_negative_unit_are_refused(tmp_path: Path) -> None:
    fits.PrimaryHDU().writeto(tmp_path / "none.fits")
    with pytest.raises(InputError, match="no plain image"):
        open_image(tmp_path / "none.fits")
    unit = fits.PrimaryHDU(sample((8, 9), "int16"))
    unit.header["BSCALE"] = -1.0
    unit.writeto(tmp_path / "negative.fits")
    with pytest.raises(InputError, match="BSCALE"):
        open_image(tmp_path / "negative.fits")


def test_truncation_is_seen_before_any_pixel_is_read(tmp_path: Path) -> None:
    fits.PrimaryHDU(sample((64, 64), "float32")).writeto(tmp_path / "in.fits")
    (tmp_path / "in.fits").write_bytes((tmp_path / "in.fits").read_bytes()[:4000])
    with pytest.raises(FileError, match="truncated"):
        open_image(tmp_path / "in.fits")
