from __future__ import annotations

import re
from pathlib import Path

import tifffile
import zarr
from helpers.image_samples import sample
from typer.testing import CliRunner

from normeq import images
from normeq.cli import app


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


def test_a_card_is_text_for_people() -> None:
    result = CliRunner().invoke(app, ["info", "default"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert not any(character in result.stdout for character in '{}_"')
    assert "recipe" in lines
    assert "  optimization" in lines
    assert any(line.startswith("    learning rate: ") for line in lines)


def test_a_classical_method_is_described() -> None:
    result = CliRunner().invoke(app, ["info", "nlm"])
    assert "Average pixels with similar surroundings" in result.stdout
