from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from skimage import data
from typer.testing import CliRunner

from normeq.cli import app
from normeq.noise import NoiseModel, estimate_noise, poisson_gaussian


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noise")
    camera = data.camera()[:256, :256].astype(np.float64)
    noisy = poisson_gaussian(camera, 2.0, 3.0, np.random.default_rng(0)) + 100
    tifffile.imwrite(folder / "cells.tif", np.rint(noisy).astype(np.uint16))
    both = np.stack([np.rint(noisy), np.rint(3 * noisy)]).astype(np.uint16)
    tifffile.imwrite(folder / "two.ome.tif", np.stack([both, both]), metadata={"axes": "TCYX"})
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["noise", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_noise_is_told_in_words(folder):
    told = run(folder / "cells.tif")
    model = estimate_noise(tifffile.imread(folder / "cells.tif"))
    assert told.splitlines()[0] == model.describe()
    assert f"variance = {model.gain:.4g} · level - {-model.base:.4g}" in told
    assert "sigma at the mean level" in told


def test_json_holds_the_model(folder):
    found = json.loads(run(folder / "cells.tif", "--json"))
    model = estimate_noise(tifffile.imread(folder / "cells.tif"))
    assert NoiseModel.from_dict(found["noise"][0]) == model


def test_every_channel_has_its_own_noise(folder):
    first, second = json.loads(run(folder / "two.ome.tif", "--json"))["noise"]
    assert (first["channel"], second["channel"]) == ("channel 0", "channel 1")
    assert first["gain"] == pytest.approx(2.0, rel=0.15)
    assert second["gain"] == pytest.approx(6.0, rel=0.15)


def test_the_picture_shows_a_channel_each(folder, tmp_path):
    pytest.importorskip("matplotlib")
    run(folder / "cells.tif", "--plot", tmp_path / "one.png")
    run(folder / "two.ome.tif", "--plot", tmp_path / "two.png")
    drawn = sorted(file.name for file in tmp_path.glob("*.png"))
    assert drawn == ["one.png", "two-0.png", "two-1.png"]
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_the_short_form_is_part_of_what_is_known_of_an_image(folder):
    told = CliRunner().invoke(app, ["info", str(folder / "cells.tif")]).output
    assert "noise   signal-dependent, gain" in told


def test_only_a_part_of_a_large_file_is_read(tmp_path, monkeypatch):
    from normeq.images.npy import NpySource

    stack = np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.uint8, (60, 512, 512))
    stack[:] = np.rint(100 + 5 * np.random.default_rng(0).standard_normal((512, 512)))
    stack.flush()
    rows, read = [], NpySource.read_region

    def counted(source, frame, chosen, columns):
        rows.append(chosen.stop - chosen.start)
        return read(source, frame, chosen, columns)

    monkeypatch.setattr(NpySource, "read_region", counted)
    found = json.loads(run(tmp_path / "large.npy", "--json"))["noise"][0]
    assert found["base"] == pytest.approx(25 + 1 / 12, rel=0.05)
    assert sum(rows) == 4 * 512


def test_a_constant_image_can_be_drawn_too(tmp_path):
    pytest.importorskip("matplotlib")
    tifffile.imwrite(tmp_path / "flat.tif", np.full((40, 40), 7, np.uint8))
    told = run(tmp_path / "flat.tif", "--plot", tmp_path / "flat.png")
    assert told.startswith("uniform, sigma 0; white")
    assert (tmp_path / "flat.png").exists()


def test_a_missing_file_is_one_sentence(tmp_path):
    result = CliRunner().invoke(app, ["noise", str(tmp_path / "none.tif")])
    assert result.exit_code == 1
    assert "does not exist" in result.output
