"""Packages for bioimage.io: complete, the same in both formats, and with a halo that is enough."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.exported import network
from helpers.small_networks import tiny
from torch import Tensor

import normeq
from normeq.denoising.onnx_network import OnnxNetwork
from normeq.errors import UsageError
from normeq.exporting.torchscript import load_torchscript

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
pytest.importorskip("onnxscript", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
UNET = ("unet", "norm-equiv-residual")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "unet.zip"
    normeq.export(network(*UNET), path, to="bioimageio")
    return path


@pytest.fixture(scope="module")
def files(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.fixture(scope="module")
def about(files: dict[str, bytes]) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(files["rdf.yaml"])
    return loaded


@pytest.fixture(scope="module")
def scripted(files: dict[str, bytes]) -> Callable[[Tensor], Tensor]:
    return load_torchscript(files["weights.pt"])


def entries(part: Any) -> list[dict[str, str]]:
    """Return everything within a description that names a file and its digest."""
    if isinstance(part, list):
        return [entry for each in part for entry in entries(each)]
    if not isinstance(part, dict):
        return []
    return [part] if "sha256" in part else entries(list(part.values()))


def test_the_description_names_every_file_and_its_digest(
    files: dict[str, bytes], about: dict[str, Any]
) -> None:
    found = entries(about)
    assert set(about["weights"]) == {"torchscript", "onnx"}
    for entry in found:
        assert hashlib.sha256(files[entry["source"]]).hexdigest() == entry["sha256"]
    named = {entry["source"] for entry in found} | {about["documentation"], *about["covers"]}
    assert named | {"rdf.yaml"} == files.keys()
    assert "license" not in about  # this network is not a shipped one


@torch.no_grad()
def test_both_formats_give_what_the_network_gives(
    files: dict[str, bytes], scripted: Callable[[Tensor], Tensor]
) -> None:
    given, expected = (
        torch.from_numpy(np.load(io.BytesIO(files[f"test_{kind}.npy"])))
        for kind in ("input", "output")
    )
    run = OnnxNetwork("weights.onnx", data=files["weights.onnx"])
    for exported in (run, scripted):
        torch.testing.assert_close(exported(given), expected, atol=1e-5, rtol=0)
    for size in ((1, 1, 1, 1), (3, 1, 5, 2), (1, 1, 33, 48)):
        y = torch.rand(size, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(scripted(y), network(*UNET)(y), atol=1e-5, rtol=0)


def tiled(net: Callable[[Tensor], Tensor], image: Tensor, halo: int, side: int) -> Tensor:
    """Run a network as the programs of bioimage.io do: tiles with a halo, which is cut off."""
    result = torch.full_like(image, torch.nan)[..., halo:-halo, halo:-halo]
    for top in range(0, result.shape[-2], side):
        for left in range(0, result.shape[-1], side):
            seen = image[..., top : top + side + 2 * halo, left : left + side + 2 * halo]
            rows, columns = slice(top, top + side), slice(left, left + side)
            result[..., rows, columns] = net(seen)[..., halo:-halo, halo:-halo]
    return result


@torch.no_grad()
def test_the_halo_is_enough_and_a_smaller_one_is_noticed(
    about: dict[str, Any], scripted: Callable[[Tensor], Tensor]
) -> None:
    *_, axis = about["outputs"][0]["axes"]
    size, halo = about["inputs"][0]["axes"][-1]["size"], axis["halo"]
    side, step = size["min"] - 2 * halo, size["step"]
    assert halo >= network(*UNET).receptive_field > halo - step
    image = torch.rand(1, 1, *(2 * halo + n * side for n in (3, 4)),
                       generator=torch.Generator().manual_seed(0))  # fmt: skip
    inside = scripted(image)[..., halo:-halo, halo:-halo]
    assert (tiled(scripted, image, halo, side) - inside).abs().max() <= 1e-6
    small = halo - step
    cut = image[..., step:-step, step:-step]
    assert (tiled(scripted, cut, small, side) - inside).abs().max() > 1e-5


def test_what_cannot_be_packed_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fdncnn has no finite receptive field"):
        normeq.export(tiny("fdncnn", "norm-equiv-wrapped"), tmp_path / "a.zip", to="bioimageio")
    told = tiny("fdncnn", blind=False)
    with pytest.raises(UsageError, match="take only the image"):
        normeq.export(told, tmp_path / "a.zip", to="bioimageio", with_sigma=True)
    assert not list(tmp_path.iterdir())


def test_the_test_command_of_bioimageio_passes(package: Path) -> None:
    pytest.importorskip(
        "bioimageio.core",
        reason="bioimageio.core is not installed, for it needs an older pydantic: install "
        "normeq[bioimageio] in an environment of its own",
    )
    command = [sys.executable, "-m", "bioimageio.core", "test", str(package)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
