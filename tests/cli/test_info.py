from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from helpers.file_samples import write_sample
from helpers.image_samples import sample
from PIL import Image
from typer.testing import CliRunner

from normeq import images
from normeq.cli import app
from normeq.cli.cards import card_text


def test_info_of_images_and_models(tmp_path: Path, weights: Path) -> None:
    images.write(tmp_path / "a.png", sample((16, 24, 3), "uint8"))
    about = CliRunner().invoke(app, ["info", str(tmp_path / "a.png")]).stdout
    assert "16 x 24 x 3" in about
    assert "YXS" in about
    about = CliRunner().invoke(app, ["info", str(weights)]).stdout
    assert "norm-equiv-residual" in about
    assert "receptive field" in about
    assert "trained on" in about


def told(path: Path) -> dict[str, str]:
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 0, result.output
    return dict(re.split("  +", line, maxsplit=1) for line in result.stdout.splitlines())


def test_pixel_size_and_channels_of_an_ome_tiff(tmp_path: Path) -> None:
    about = {"axes": "CYX", "PhysicalSizeX": 65.0, "PhysicalSizeXUnit": "nm", "PhysicalSizeY": 0.07}
    about["Channel"] = {"Name": ["DAPI", "GFP"]}
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(path, sample((2, 16, 16), "uint16"), metadata=about, ome=True)
    assert told(path)["pixel size"] == "X 0.065 µm, Y 0.07 µm"
    assert told(path)["channels"] == "DAPI, GFP"


def test_pixel_size_of_imagej_and_of_plain_tiffs(tmp_path: Path) -> None:
    about = {"axes": "ZYX", "unit": "um", "spacing": 0.5}
    image = sample((3, 16, 16), "uint16")
    tifffile.imwrite(tmp_path / "a.tif", image, imagej=True, resolution=(5, 4), metadata=about)
    assert told(tmp_path / "a.tif")["pixel size"] == "X 0.2 µm, Y 0.25 µm, Z 0.5 µm"
    tifffile.imwrite(
        tmp_path / "b.tif", image[0], resolution=(1000, 500), resolutionunit="CENTIMETER"
    )
    assert told(tmp_path / "b.tif")["pixel size"] == "X 10 µm, Y 20 µm"
    tifffile.imwrite(tmp_path / "c.tif", image[0])
    assert "pixel size" not in told(tmp_path / "c.tif")


def test_pixel_size_and_channels_of_an_ome_zarr(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("0", data=sample((2, 16, 16), "uint16"))
    axes = [{"name": "t", "unit": "minute"}, {"name": "y", "unit": "nanometer"}, {"name": "x"}]
    scale = {"type": "scale", "scale": [0.5, 65, 65]}
    image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": [scale]}]}
    group.attrs.update({"multiscales": [image], "omero": {"channels": [{"label": "GFP"}]}})
    assert told(path)["pixel size"] == "T 30 s, Y 0.065 µm"
    assert told(path)["channels"] == "GFP"


def _mrc(path: Path) -> None:
    mrcfile = pytest.importorskip("mrcfile")
    with mrcfile.new(path, sample((3, 16, 16), "int16")) as file:
        file.set_volume()
        file.voxel_size = (1.5, 1.5, 20.0)


def _nifti(path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(sample((16, 16, 3, 2), "int16"), None)
    image.header.set_zooms((0.5, 0.5, 2.0, 1500.0))
    image.header.set_xyzt_units("mm", "msec")
    nibabel.save(image, path)


def _dicom(path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    write_sample(path)
    data = pydicom.dcmread(path)
    data.PixelSpacing, data.SpacingBetweenSlices = [0.7, 0.6], 3
    data.save_as(path)


def _fits(path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    header = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CD1_1": -1e-4, "CD2_2": 1e-4}
    fits.PrimaryHDU(sample((16, 16), "int16"), fits.Header(header)).writeto(path)


def _hdf5(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        data = file.create_dataset("raw", data=sample((3, 16, 16), "uint16"))
        data.attrs["element_size_um"] = [2.0, 0.3, 0.4]


def _png(path: Path) -> None:
    Image.fromarray(sample((16, 16), "uint8")).save(path, dpi=(254, 254))


@pytest.mark.parametrize(
    ("name", "write", "size"),
    [
        ("in.mrc", _mrc, "X 0.00015 µm, Y 0.00015 µm, Z 0.002 µm"),
        ("in.nii", _nifti, "X 500 µm, Y 500 µm, Z 2000 µm, T 1.5 s"),
        ("in.dcm", _dicom, "X 600 µm, Y 700 µm, Z 3000 µm"),
        ("in.fits", _fits, "X 0.36 arcsec, Y 0.36 arcsec"),
        ("in.h5", _hdf5, "X 0.4 µm, Y 0.3 µm, Z 2 µm"),
        ("in.png", _png, "X 100 µm, Y 100 µm"),
        ("in.bmp", _png, "X 100 µm, Y 100 µm"),
    ],
)
def test_pixel_size_of_other_formats(
    tmp_path: Path, name: str, write: Callable[[Path], None], size: str
) -> None:
    write(tmp_path / name)
    assert told(tmp_path / name)["pixel size"] == size


def test_every_image_of_a_file_is_described(tmp_path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    images = [fits.ImageHDU(sample((16, 16 + n), "int16"), name=f"CHIP{n}") for n in (1, 2)]
    fits.HDUList([fits.PrimaryHDU(), *images]).writeto(tmp_path / "in.fits")
    about = told(tmp_path / "in.fits")
    assert (about["shape of CHIP1"], about["shape of CHIP2"]) == ("16 x 17", "16 x 18")


def test_one_image_of_a_file_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", a=sample((16, 16), "uint8"), b=sample((8, 8), "uint8"))
    assert told(Path(f"{tmp_path}/in.npz:b"))["shape"] == "8 x 8"


def test_a_card_is_text_for_people() -> None:
    result = CliRunner().invoke(app, ["info", "default"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert not any(character in result.stdout for character in '{}_"')
    assert "recipe" in lines
    assert "  optimization" in lines
    assert any(line.startswith("    learning rate: ") for line in lines)


def test_a_card_says_little_about_earlier_stages() -> None:
    recipe = {"data": {"patch": 64, "sigma": [1, 55]}}
    first = {"steps": 8000, "hours": 2.2, "recipe": recipe, "validation_psnr": {"25": 27.5}}
    second = {"steps": 500, "hours": 0.1, "recipe": recipe, "started_from": first}
    second["pruned"] = "half is left"
    card = {
        "steps": 20,
        "recipe": {"data": {"patch": 128, "sigma": [1, 55]}},
        "earlier": [{"until": 1000, "recipe": recipe}],
        "started_from": second,
    }
    assert card_text(card).splitlines()[-6:] == [
        "    sigma: 1, 55",
        "until step 1,000",
        "  data, patch: 64",
        "stages before, the latest first",
        "  500 steps, 0.1 hours, pruned: half is left",
        "  8,000 steps, 2.2 hours, 27.5 dB at 25",
    ]


@pytest.mark.parametrize("odd", [None, 3, "text", [], [3], {}, {"steps": [1]}, [{"until": {}}]])
def test_cards_of_other_programs_are_shown_as_far_as_they_go(odd: Any) -> None:
    card = {"data": "mine", "earlier": odd, "started_from": odd, "validation_psnr": odd}
    assert "data: mine" in card_text(card)
    assert "earlier: text" in card_text({"earlier": "text"})
    assert "stages before" in card_text({"started_from": {"validation_psnr": odd}})


def test_a_classical_method_is_described() -> None:
    result = CliRunner().invoke(app, ["info", "nlm"])
    assert "Average pixels with similar surroundings" in result.stdout
