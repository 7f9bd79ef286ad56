import logging
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers.image_samples import copy, inverted, sample

from normeq import images
from normeq.denoising.files import denoise_files
from normeq.errors import FileError, InputError, UsageError
from normeq.images import gzipped, open_image

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


def test_compressed_with_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    first, second = sample((13, 17), "int16"), sample((2, 9, 8), "float32")
    units = fits.HDUList([fits.PrimaryHDU(first), fits.ImageHDU(second)])
    units.writeto(tmp_path / "in.fits.gz", checksum=True)
    copy(tmp_path / "in.fits.gz", tmp_path / "out.fits.gz")
    assert (tmp_path / "out.fits.gz").read_bytes()[:2] == b"\x1f\x8b"
    with fits.open(tmp_path / "out.fits.gz", checksum=True) as after:
        np.testing.assert_array_equal(after[0].data, inverted(first))
        np.testing.assert_array_equal(after[1].data, inverted(second))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "float32"])
def test_compressed_by_tiles(tmp_path: Path, dtype: str) -> None:
    image = sample((32, 40), dtype)
    options = {"quantize_level": 0.0, "compression_type": "GZIP_1"} if dtype == "float32" else {}
    unit = fits.CompImageHDU(image, name="SCI", **options)
    unit.header["CRVAL1"] = 202.4682
    table = fits.BinTableHDU.from_columns([fits.Column("a", "D", array=[1.0, 2.0])])
    fits.HDUList([fits.PrimaryHDU(), unit, table]).writeto(tmp_path / "in.fits.fz")
    with open_image(tmp_path / "in.fits.fz") as source:
        np.testing.assert_array_equal(source.physical(source.read(0, 0, 32))[..., 0], image)
    [outcome] = denoise_files(tmp_path / "in.fits.fz", model=lambda plane: plane / 2)
    assert outcome.output == str(tmp_path / "in.denoised.fits")
    with fits.open(outcome.output) as after:
        assert type(after["SCI"]) is fits.ImageHDU
        np.testing.assert_allclose(after["SCI"].data, image / 2, atol=0.5)
        assert after["SCI"].header["CRVAL1"] == 202.4682
        np.testing.assert_array_equal(after[2].data["a"], [1.0, 2.0])


def test_what_unpacks_to_more_than_there_is_room_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits.PrimaryHDU(np.zeros((500, 500))).writeto(tmp_path / "in.fits.gz")
    monkeypatch.setattr(gzipped, "_SHARE", 0.0)
    with pytest.raises(InputError, match="more than the temporary folder has room for"):
        open_image(tmp_path / "in.fits.gz")


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
    with pytest.raises(InputError, match="contains no image"):
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


def write_observation(path: Path) -> dict[str, np.ndarray]:
    """Write a file as space telescopes do: two exposures, each with its errors and flags."""
    units = [fits.PrimaryHDU()]
    data = {}
    for number, shape in ((1, (20, 24)), (2, (2, 18, 16))):
        for kind, dtype in (("SCI", "float32"), ("ERR", "float32"), ("DQ", "int16")):
            name = f"{kind}{number}" if kind == "SCI" else kind
            data[f"{kind}{number}"] = sample(shape, dtype, number)
            units.append(fits.ImageHDU(data[f"{kind}{number}"], name=name, ver=number))
    fits.HDUList(units).writeto(path, checksum=True)
    return data


def test_every_image_of_a_file_is_denoised_and_the_rest_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = write_observation(tmp_path / "in.fits")
    with caplog.at_level(logging.INFO):
        [outcome] = denoise_files(
            tmp_path / "in.fits", tmp_path / "out.fits", model=lambda plane: plane / 2
        )
    assert (outcome.status, outcome.planes) == ("done", 3)
    assert "HDUs that are denoised: SCI1, SCI2" in caplog.text
    assert "HDUs that are not denoised: ERR, DQ, ERR, DQ" in caplog.text
    with fits.open(tmp_path / "out.fits", checksum=True) as after:
        for unit, name in enumerate(data, 1):
            factor = 2 if name.startswith("SCI") else 1
            np.testing.assert_allclose(after[unit].data, data[name] / factor, rtol=1e-6)


@pytest.mark.parametrize("part", ["SCI2", "sci2", "4"])
def test_units_can_be_named(tmp_path: Path, part: str) -> None:
    data = write_observation(tmp_path / "in.fits")
    denoise_files(
        tmp_path / "in.fits", tmp_path / "out.fits", model=lambda plane: plane / 2, part=part
    )
    with fits.open(tmp_path / "out.fits") as after:
        np.testing.assert_array_equal(after[1].data, data["SCI1"])
        np.testing.assert_allclose(after[4].data, data["SCI2"] / 2, rtol=1e-6)
    with pytest.raises(UsageError, match="'SCI3' is not one of its images, which are SCI1, ERR"):
        open_image(tmp_path / "in.fits", part="SCI3")
    np.save(tmp_path / "a.npy", sample((8, 8), "uint8"))
    with pytest.raises(UsageError, match="is a single image"):
        open_image(tmp_path / "a.npy", part="1")


@pytest.mark.parametrize(
    ("keyword", "value", "sentence"),
    [
        ("NAXIS", "-1", "cannot be negative"),
        ("NAXIS", "999999999", "at most 999 axes"),
        ("NAXIS1", "-9", "cannot be negative"),
        ("NAXIS1", "4611686018427387904", "truncated|max-pixels"),
        ("NAXIS", "T", "NAXIS is True"),
        ("BITPIX", "17", "BITPIX is 17"),
        ("BITPIX", "'x'", "BITPIX is 'x'"),
    ],
)
def test_hostile_headers_are_refused_at_once(
    tmp_path: Path, keyword: str, value: str, sentence: str
) -> None:
    fits.PrimaryHDU(sample((8, 9), "int16")).writeto(tmp_path / "in.fits")
    content = (tmp_path / "in.fits").read_bytes()
    place = content.index(f"{keyword:<8}= ".encode())
    card = f"{keyword:<8}= {value:>20}".ljust(80).encode()
    (tmp_path / "in.fits").write_bytes(content[:place] + card + content[place + 80 :])
    with pytest.raises((FileError, InputError), match=sentence):
        open_image(tmp_path / "in.fits")


def test_a_header_without_an_end_is_refused(tmp_path: Path) -> None:
    cards = b"SIMPLE  =                    T".ljust(80) + b"COMMENT".ljust(80) * 35
    (tmp_path / "in.fits").write_bytes(cards + b"COMMENT".ljust(80) * 36 * 5000)
    with pytest.raises(FileError, match="more than 4096 blocks"):
        open_image(tmp_path / "in.fits")


def test_threads_leave_the_filters_of_warnings_alone(tmp_path: Path) -> None:
    fits.PrimaryHDU(sample((8, 9), "float32")).writeto(tmp_path / "in.fits")
    before = list(warnings.filters)
    changed = []

    def read() -> None:
        for _ in range(50):
            images.read(tmp_path / "in.fits")
            changed.append(list(warnings.filters) != before)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(changed)


def test_plain_files_need_no_library(tmp_path: Path) -> None:
    fits.PrimaryHDU(sample((8, 9), "float32")).writeto(tmp_path / "in.fits")
    code = (
        "import sys; sys.modules['astropy'] = None\n"
        f"from normeq import images; print(images.read({str(tmp_path / 'in.fits')!r}).shape)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "(8, 9)\n"
