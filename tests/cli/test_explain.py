from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.small_networks import tiny
from skimage import data
from typer.testing import CliRunner

import normeq
from normeq.cli import app

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain") / "stack.tif"
    planes = np.stack([data.camera()[:96, :80], data.coins()[:96, :80]]).astype(np.uint16)
    tifffile.imwrite(path, planes, metadata={"axes": "TYX"}, imagej=True)
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)])
    return result.exit_code, result.output


def test_filters_are_printed_and_drawn(stack, weights, tmp_path):
    picture = tmp_path / "filters.png"
    code, told = run(
        stack, "--at", "10,20", "--at", "50,60", "--frame", 1, "--model", weights, "--sigma", 5,
        "-o", picture,
    )  # fmt: skip
    assert code == 0, told
    plane = tifffile.imread(stack)[1].astype(np.float64)
    found = normeq.explain(normeq.load(weights), plane, (50, 60), sigma=5)
    assert told.splitlines()[1] == (
        f"row 50, column 60; denoised value {found.value:.5g}; sum of weights 1.0000; "
        f"pixels averaged {found.effective_pixels:.3g}; noise left {found.noise_left:.3g}"
    )
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_ordinary_network_needs_a_value_range(stack, tmp_path):
    weights = tmp_path / "ordinary.safetensors"
    net = tiny("fdncnn", "ordinary")
    normeq.save(net, weights, {})
    arguments = [stack, "--at", "10,20", "--model", weights, "-o", tmp_path / "a.png", "--sigma", 5]
    code, told = run(*arguments)
    assert (code, "--value-range LOW HIGH" in told) == (2, True)
    code, told = run(*arguments, "--value-range", 0, 255)
    plane = tifffile.imread(stack)[0] / 255
    found = normeq.explain(net, plane, (10, 20), sigma=5 / 255)
    assert f"denoised value {255 * found.value:.5g}" in told
    assert f"noise left {255 * found.noise_left:.3g}" in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--at", "10"], "--at 10 is not ROW,COLUMN"),
        (["--at", "96,0"], "row 96, column 0 is outside the image"),
        (["--at", "0,0", "--frame", "2"], "there is no channel 0 of plane 2"),
        (["--at", "0,0", "--model", "bm3d"], "bm3d is not a network"),
    ],
)
def test_mistakes_are_one_sentence(stack, tmp_path, arguments, sentence):
    code, told = run(stack, *arguments, "-o", tmp_path / "a.png")
    assert code != 0
    assert sentence in told.replace("\n", " ")
    assert not list(tmp_path.iterdir())
