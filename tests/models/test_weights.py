from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_networks import EVERY_NETWORK, describe, tiny
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

import normeq
import normeq.conversion
from normeq.errors import UsageError, WeightsError
from normeq.models import Network, read_card


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
    with pytest.raises(UsageError, match=r"no weights file .*nothing.* shipped with normeq"):
        normeq.load(tmp_path / "nothing")


def test_a_name_may_be_in_any_case_and_a_near_miss_is_suggested() -> None:
    assert normeq.load("DEFAULT").config == normeq.load("default").config
    with pytest.raises(UsageError, match="Did you mean 'default'"):
        normeq.load("defualt")


def test_a_card_is_read_without_the_tensors(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    normeq.save(tiny("unet"), path, {"data": "none"})
    assert read_card(path) == {"data": "none"} == normeq.load(path).card
    path.write_bytes(b"nothing")
    with pytest.raises(WeightsError, match="not a complete safetensors file"):
        read_card(path)


@pytest.mark.parametrize("length", [0, 4, 100, -50])
def test_a_truncated_file_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    normeq.save(tiny("unet"), path, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(WeightsError, match="not a complete safetensors file"):
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
            "does not contain the network it names",
        ),
    ],
)
def test_a_foreign_file_is_refused(
    header: dict[str, str] | None, sentence: str, tmp_path: Path
) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors", header)
    with pytest.raises(WeightsError, match=sentence):
        normeq.load(tmp_path / "other.safetensors")


def header(**fields: Any) -> dict[str, str]:
    return {"normeq": json.dumps({"format": 1, "architecture": "unet", "config": {}, **fields})}


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        (header(config={"variant": "ordinary", "widths": [10**9]}), r"widths is \[1000000000\]"),
        (header(config={"variant": "ordinary", "widths": [8] * 100}), "a list of 1 to 8 numbers"),
        (header(config={"variant": "ordinary", "widths": ["8"]}), "whole numbers from 1"),
        (header(config={"variant": "ordinary", "blocks": 10**8}), "blocks is 100000000"),
        (header(config={"variant": "ordinary", "blocks": True}), "blocks is True"),
        (header(config={"variant": "ordinary", "blocks": [10**8] * 5}), "whole numbers from 0"),
        (header(config={"variant": "ordinary", "blocks": [1] * 100}), "a list of 1 to 15 numbers"),
        (header(config={"variant": "ordinary", "blocks": [1, 1]}), "for 3 scales use one"),
        (header(config={"variant": "ordinary", "unshuffle": 0}), "unshuffle is 0"),
        (header(architecture="fdncnn", config={"depth": 10**8}), "depth is 100000000"),
        (header(architecture="vgg8b", config={"image_size": 10**9}), "image_size is"),
        (header(config={"widths": [65536, 65536]}), "no place for the tensor 'a'"),
        (header(config=[1]), "wrong types"),
        (header(architecture=["unet"]), "wrong types"),
        (header(card=["a", "list"]), "wrong types"),
        (header(card={"text": "x" * 2**21}), "more than 1,048,576"),
        ({"normeq": "[" * 100_000 + "]" * 100_000}, "damaged header"),
        ({"normeq": "[1, 2]"}, "damaged header"),
        ({"normeq": "7"}, "damaged header"),
    ],
)
def test_a_hostile_header_gets_a_sentence_and_costs_nothing(
    about: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "hostile.safetensors", about)
    with pytest.raises(WeightsError, match=sentence):
        normeq.load(tmp_path / "hostile.safetensors")


def changed(tmp_path: Path, change: Callable[[Tensor], Tensor]) -> Path:
    """Write the weights of a small network with one tensor changed; return the path."""
    net, path = tiny("unet", "norm-equiv-residual"), tmp_path / "net.safetensors"
    normeq.save(net, path, {})
    with safe_open(path, "pt") as file:
        about = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors["tail.weight"] = change(tensors["tail.weight"]).contiguous()
    save_file(tensors, path, about)
    return path


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.index_fill(0, torch.tensor([1]), torch.nan), "'tail.weight' contains NaN"),
        (lambda t: t.index_fill(0, torch.tensor([1]), -torch.inf), "'tail.weight' contains NaN"),
        (lambda t: t.to(torch.complex64), "type torch.complex64"),
        (lambda t: t.to(torch.int8), "type torch.int8"),
        (lambda t: t.double(), "different floating point types"),
        (lambda t: t[:-1], "has shape"),
    ],
)
def test_weights_that_cannot_be_right_are_refused(
    change: Callable[[Tensor], Tensor], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(WeightsError, match=sentence):
        normeq.load(changed(tmp_path, change))


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    normeq.save(tiny("unet"), tmp_path / "net.safetensors", {})
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    net = normeq.load(tmp_path / "net.safetensors")
    assert torch.equal(torch.rand(3), expected)
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_only_registry_networks_are_saved(tmp_path: Path) -> None:
    net = normeq.models.UNet("norm-equiv", widths=(4,), blocks=1)
    for other in (net, torch.nn.Conv2d(1, 1, 1)):
        with pytest.raises(UsageError, match=r"built by normeq\.create"):
            normeq.save(other, tmp_path / "net.safetensors", {})


def test_a_file_of_a_twin_says_how_it_is_loaded(tmp_path: Path) -> None:
    net = torch.nn.Conv2d(1, 1, 3, padding=1)
    twin, report = normeq.convert(net, "norm-equiv-wrapped", torch.rand(1, 1, 8, 8))
    normeq.conversion.save_twin(twin, report, tmp_path / "twin.safetensors")
    with pytest.raises(WeightsError, match=r"normeq\.conversion\.load_twin"):
        normeq.load(tmp_path / "twin.safetensors")


@pytest.mark.parametrize("quicker", [normeq.fold, normeq.nn.fuse])
def test_what_could_not_be_loaded_again_is_not_saved(
    quicker: Callable[[Network], Network], tmp_path: Path
) -> None:
    net = normeq.create("unet", widths=(4, 8), blocks=1)
    with pytest.raises(UsageError, match="save the network it came from"):
        normeq.save(quicker(net), tmp_path / "net.safetensors", {})
    assert list(tmp_path.iterdir()) == []
