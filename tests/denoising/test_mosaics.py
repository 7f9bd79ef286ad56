"""Raw images of cameras: recognised, refused, or denoised plane by plane."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from helpers.small_networks import tiny
from numpy.typing import NDArray
from skimage import data
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.errors import InputError, UsageError

NET = tiny("unet", "norm-equiv-residual")


@pytest.fixture(scope="module")
def mosaic() -> NDArray[np.uint16]:
    """Return the RGGB mosaic of a photograph in 16 bits."""
    colors = 16 * data.astronaut()[:160, :192].astype(np.uint16)
    raw = colors[..., 1].copy()
    raw[::2, ::2], raw[1::2, 1::2] = colors[::2, ::2, 0], colors[1::2, 1::2, 2]
    return raw


def test_a_mosaic_is_refused_unless_it_is_declared(mosaic: NDArray[np.uint16]) -> None:
    with pytest.raises(InputError, match=r"Bayer mosaic.*--bayer RGGB"):
        normeq.denoise(mosaic, model=NET)
    normeq.denoise(mosaic, model=NET, bayer="none")
    normeq.denoise(data.astronaut()[:160, :192, 1], model=NET)
    with pytest.raises(UsageError, match="bayer is 'RGB'"):
        normeq.denoise(mosaic, model=NET, bayer="RGB")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="even number"):
        normeq.denoise(mosaic[:-1], model=NET, bayer="RGGB")


@pytest.mark.parametrize("tile", [None, 32])
def test_its_planes_are_denoised_one_by_one(mosaic: NDArray[np.uint16], tile: int | None) -> None:
    stack = np.stack([mosaic, mosaic + 7]).astype(np.float64)
    clean = normeq.denoise(stack, model=NET, noise="gaussian", bayer="RGGB", tile=tile)
    for row in (0, 1):
        for column in (0, 1):
            phase = np.index_exp[row::2, column::2]
            alone = normeq.denoise(stack[0][phase], model=NET, noise="gaussian")
            np.testing.assert_allclose(clean[0][phase], alone, atol=1e-3)
            np.testing.assert_allclose(clean[1][phase], alone + 7, atol=1e-3)


def test_files_and_the_command_line(mosaic: NDArray[np.uint16], tmp_path: Path) -> None:
    expected = normeq.denoise(mosaic, model=NET, bayer="RGGB")
    normeq.save(NET, tmp_path / "net.safetensors", {})
    normeq.images.write(tmp_path / "raw.tif", mosaic)
    zarr.create_array(tmp_path / "raw.zarr", data=mosaic, chunks=(32, 32))
    command = ["denoise", str(tmp_path), "--model", str(tmp_path / "net.safetensors")]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 1
    assert refused.output.count("looks like the Bayer mosaic") == 2
    done = CliRunner().invoke(app, [*command, "--bayer", "RGGB"])
    assert done.exit_code == 0, done.output
    for name in ("raw.denoised.tif", "raw.denoised.zarr"):
        np.testing.assert_array_equal(normeq.images.read(tmp_path / name), expected)
