from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from support import EVERY_NETWORK, describe, tiny

import normeq
from normeq.errors import UsageError, WeightsError
from normeq.models import Network


@pytest.mark.parametrize("options", EVERY_NETWORK, ids=describe)
def test_what_is_saved_is_what_is_loaded(
    options: dict[str, Any], dtype: torch.dtype, tmp_path: Path
) -> None:
    net = tiny(**options).to(dtype)
    card = {"data": "Zürich", "scores": [1.5, 2]}
    normeq.save(net, tmp_path / "net.safetensors", card)
    loaded = normeq.load(tmp_path / "net.safetensors")
    assert loaded.card == card
    assert loaded.config == net.config
    assert not loaded.training
    x = torch.rand(1, 1, 20, 20, dtype=dtype)
    arguments = () if options.get("blind", True) else (0.1,)
    assert torch.equal(loaded(x, *arguments), net(x, *arguments))


def test_saving_leaves_no_other_file(tmp_path: Path) -> None:
    normeq.save(tiny("unet"), tmp_path / "net.safetensors", {})
    assert [path.name for path in tmp_path.iterdir()] == ["net.safetensors"]


def test_a_missing_file_names_what_is_shipped(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"no weights file .*nothing.* shipped with normeq"):
        normeq.load(tmp_path / "nothing")


@pytest.mark.parametrize("length", [0, 4, 100, -50])
def test_a_truncated_file_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    normeq.save(tiny("unet"), path, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(WeightsError, match="not a whole safetensors file"):
        normeq.load(path)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (None, "names no network"),
        ({"normeq": "{"}, "damaged header"),
        ({"normeq": '{"format": 99}'}, "format 99"),
        ({"normeq": '{"format": 1, "architecture": "gan", "config": {}}'}, "'gan' is unknown"),
        (
            {"normeq": '{"format": 1, "architecture": "unet", "config": {"variant": "ordinary"}}'},
            "does not hold the network it names",
        ),
    ],
)
def test_a_foreign_file_is_refused(
    header: dict[str, str] | None, sentence: str, tmp_path: Path
) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors", header)
    with pytest.raises(WeightsError, match=sentence):
        normeq.load(tmp_path / "other.safetensors")


def test_only_registry_networks_are_saved(tmp_path: Path) -> None:
    net = normeq.models.UNet("norm-equiv", widths=(4,), blocks=1)
    with pytest.raises(UsageError, match=r"built by normeq\.create"):
        normeq.save(net, tmp_path / "net.safetensors", {})


@pytest.mark.parametrize("quicker", [normeq.fold, normeq.nn.fuse])
def test_what_could_not_be_loaded_again_is_not_saved(
    quicker: Callable[[Network], Network], tmp_path: Path
) -> None:
    net = normeq.create("unet", widths=(4, 8), blocks=1)
    with pytest.raises(UsageError, match="save the network it came from"):
        normeq.save(quicker(net), tmp_path / "net.safetensors", {})
    assert list(tmp_path.iterdir()) == []
