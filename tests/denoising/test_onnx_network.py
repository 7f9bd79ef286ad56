"""ONNX files as models: ours, those of others, and those that are not what they say."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.exported import network, onnx_bytes, onnx_network

import normeq
from normeq.denoising.names import denoiser_for
from normeq.denoising.onnx_header import KEY
from normeq.denoising.onnx_network import OnnxNetwork
from normeq.errors import NormeqError, UsageError, WeightsError
from normeq.nn import fold

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
UNET = ("unet", "norm-equiv-residual")
NOISY = 1000 + 50 * np.random.default_rng(0).standard_normal((90, 61))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    path.write_bytes(onnx_bytes(*UNET))
    return path


def foreign(
    folder: Path, nodes: Sequence[Any], channels: int = 1, header: dict[str, Any] | None = None,
    shape: tuple[Any, ...] | None = None, inputs: Sequence[str] = ("x",),
) -> Path:  # fmt: skip
    """Write a file as other programs do."""
    shape = shape or (None, channels, None, None)
    values = [onnx.helper.make_tensor_value_info(name, 1, shape) for name in inputs]
    result = onnx.helper.make_tensor_value_info("y", 1, None)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(list(nodes), "net", values, [result]),
        opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10,
    )  # fmt: skip
    if header is not None:
        onnx.helper.set_model_props(model, {KEY: json.dumps(header)})
    path = folder / "foreign.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def node(operation: str, inputs: Sequence[str] = ("x",), **options: Any) -> Any:
    return onnx.helper.make_node(operation, list(inputs), ["y"], **options)


def test_a_file_denoises_like_its_network(path: Path) -> None:
    expected = normeq.denoise(NOISY, model=network(*UNET), noise="gaussian")
    found = normeq.denoise(NOISY, model=str(path), noise="gaussian")
    assert np.abs(found - expected).max() <= 1e-4 * NOISY.std()
    assert np.abs(found - NOISY).max() > 1


def test_tiles_give_what_the_whole_gives(path: Path) -> None:
    whole = normeq.denoise(NOISY, model=str(path), noise="gaussian")
    tiled = normeq.denoise(NOISY, model=str(path), noise="gaussian", tile=16)
    assert np.abs(tiled - whole).max() <= 1e-5 * NOISY.std()


def test_a_file_that_is_told_the_noise(tmp_path: Path) -> None:
    maps: dict[str, Any] = {"takes_sigma": "optional", "takes_correlation": True}
    file = tmp_path / "told.onnx"
    file.write_bytes(onnx_bytes(*UNET, True, **maps))
    levels = np.linspace(20, 90, NOISY.size).reshape(NOISY.shape)
    for sigma in (50.0, levels):
        expected = normeq.denoise(NOISY, sigma, model=network(*UNET, **maps))
        found = normeq.denoise(NOISY, sigma, model=str(file))
        assert np.abs(found - expected).max() <= 1e-4 * NOISY.std()
        assert np.abs(found - normeq.denoise(NOISY, model=str(file))).max() > 1e-3 * NOISY.std()


def test_a_copy_in_another_process_gives_the_same(path: Path) -> None:
    denoiser = denoiser_for(str(path))
    again = pickle.loads(pickle.dumps(denoiser))
    tiles = NOISY[None, None] - 1000
    assert again.identity == denoiser.identity
    np.testing.assert_array_equal(again.run(tiles), denoiser.run(tiles))


def test_a_declared_law_is_measured(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    about = onnx.load(path).metadata_props[0].value
    lying = foreign(tmp_path, [node("Relu", ("image",))], 1, json.loads(about), inputs=["image"])
    with caplog.at_level(logging.WARNING):
        assert OnnxNetwork(lying).equivariance == "none"
    assert "foreign.onnx is declared norm-equivariant, but is off by" in caplog.text
    with pytest.raises(UsageError, match=r"foreign.onnx is not equivariant.*value_range"):
        normeq.denoise(NOISY, model=str(lying))
    kept = normeq.denoise(NOISY, model=str(lying), value_range=(0.0, 4000.0), noise="gaussian")
    np.testing.assert_allclose(kept, NOISY, rtol=1e-5)


def test_files_of_others_follow_what_is_measured(tmp_path: Path) -> None:
    assert OnnxNetwork(foreign(tmp_path, [node("Identity")])).equivariance == "norm"
    assert OnnxNetwork(foreign(tmp_path, [node("Relu")])).equivariance == "scale"
    sigmoid = OnnxNetwork(foreign(tmp_path, [node("Sigmoid")], channels=3))
    assert (sigmoid.equivariance, sigmoid.channels) == ("none", 3)
    pooled = foreign(tmp_path, [node("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])])
    found = normeq.denoise(NOISY, model=str(pooled), noise="gaussian")
    assert found[1:-1, 1:-1].std() < 0.5 * NOISY.std()
    one_by_one = foreign(tmp_path, [node("Identity")], shape=(1, 1, None, None))
    assert OnnxNetwork(one_by_one)(torch.ones(3, 1, 4, 5)).shape == (3, 1, 4, 5)


@pytest.mark.parametrize(
    ("nodes", "options", "sentence"),
    [
        ([node("Identity")], {"channels": 2}, "takes images of 2 channels: a denoiser takes 1"),
        ([node("Identity")], {"shape": (1, 1, 64, 64)}, "of a fixed size .64 x 64.: export it"),
        ([node("Identity")], {"shape": (1, 64)}, r"its input x is a tensor\(float\) of shape"),
        ([node("Add", "ab")], {"inputs": "ab"}, r"has 2 inputs \(a, b\): a file that was not"),
        ([node("Nothing")], {}, "is not an ONNX file that onnxruntime can run"),
        ([node("MaxPool", kernel_shape=[2, 2])], {}, r"gives an image of shape \(1, 1, 23, 36\)"),
        ([node("MaxPool", kernel_shape=[99, 99])], {}, "does not take images of shape 1x1x24x37"),
        ([node("Identity")], {"header": {"format": 2}}, "format 2, newer than this normeq"),
        ([node("Identity")], {"header": [1]}, "its header is damaged: it is not a table"),
    ],
)
def test_files_that_do_not_fit_are_sentences(
    nodes: list[Any], options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(NormeqError, match=f"foreign.onnx.*{sentence}"):
        normeq.denoise(NOISY, model=str(foreign(tmp_path, nodes, **options)))


@pytest.mark.parametrize(
    ("field", "value"),
    [("stride", 0), ("receptive_field", -1), ("receptive_field", 2**40), ("channels", "1"),
     ("law", "all"), ("inputs", ["image", "x"]), ("takes_sigma", True)],
)  # fmt: skip
def test_a_damaged_header_is_a_sentence(path: Path, field: str, value: Any, tmp_path: Path) -> None:
    about = json.loads(onnx.load(path).metadata_props[0].value) | {field: value}
    file = foreign(tmp_path, [node("Identity", ("image",))], 1, about, inputs=["image"])
    with pytest.raises(WeightsError, match=f"header is damaged: {field} is"):
        OnnxNetwork(file)


def test_bytes_that_are_no_network_are_sentences(path: Path, tmp_path: Path) -> None:
    data, file = path.read_bytes(), tmp_path / "bad.onnx"
    for bad in (b"", b"not ONNX", data[: len(data) // 2], data[:-1], b"\0" * 1000):
        file.write_bytes(bad)
        with pytest.raises(WeightsError, match=r"bad.onnx (is not an ONNX file|has 0 inputs)"):
            OnnxNetwork(file)
    with file.open("wb") as sparse:
        sparse.truncate(2**31 + 1)
    with pytest.raises(WeightsError, match="more than an ONNX file can have"):
        OnnxNetwork(file)
    external = onnx.load(path)
    onnx.save(external, file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(WeightsError, match=r"bad\.onnx is not an ONNX file that onnxruntime"):
        OnnxNetwork(file)


def test_damaged_bytes_never_end_the_program(path: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    data, file = np.frombuffer(path.read_bytes(), np.uint8), tmp_path / "damaged.onnx"
    for _ in range(20):
        damaged = data.copy()
        damaged[random.integers(0, len(data), 20)] = random.integers(0, 256, 20)
        file.write_bytes(damaged.tobytes())
        try:
            OnnxNetwork(file)
        except NormeqError as error:
            assert "damaged.onnx" in str(error)  # noqa: PT017 - most damage is in a weight


def test_what_onnxruntime_cannot_do_is_a_sentence(path: Path) -> None:
    with pytest.raises(UsageError, match="is run by onnxruntime: leave compile"):
        denoiser_for(str(path), compile=True)
    with pytest.raises(UsageError, match="device 'cuda' cannot be used: this onnxruntime has no"):
        denoiser_for(str(path), device="cuda")
    with pytest.raises(UsageError, match="has no gradients: noise='learned' needs a network"):
        normeq.denoise(NOISY, model=str(path), noise="learned")
    with pytest.raises(UsageError, match=r"unet\.onnx is blind: leave sigma out"):
        onnx_network(*UNET)(torch.zeros(1, 1, 4, 4), 1.0)
    assert fold(onnx_network(*UNET))(torch.zeros(1, 1, 4, 4)).shape == (1, 1, 4, 4)
