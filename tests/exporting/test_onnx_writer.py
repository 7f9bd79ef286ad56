"""Exported files give what PyTorch gives, at every size, in every unit."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from helpers.exported import network, onnx_bytes, onnx_network
from helpers.small_networks import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from normeq.denoising.introspection import weights_digest
from normeq.errors import ResultError, UsageError
from normeq.exporting.agreement import check_agreement
from normeq.exporting.open_sizes import ExportedNetwork

#: A network of each way to pad: zeros, copies, the plane's statistics; a stride of 4 and of 1.
NETWORKS = [
    ("unet", "norm-equiv-residual"),
    ("drunet", "norm-equiv"),
    ("fdncnn", "norm-equiv-wrapped"),
]
MAPS: dict[str, Any] = {"takes_sigma": "optional", "takes_correlation": True}
TOLD = ("unet", "norm-equiv-residual", True)
SIZES = st.integers(1, 40)
gains = st.floats(-3, 3).map(lambda power: 10.0**power)
offsets = st.floats(-100, 100)


def image(samples: int, height: int, width: int, channels: int = 1) -> torch.Tensor:
    seed = torch.Generator().manual_seed(height * 100 + width)
    return torch.rand(samples, channels, height, width, generator=seed)


def spread(values: torch.Tensor) -> float:
    constant = values.numel() == 1
    return max(values.abs().item(), 1.0) if constant else values.std(correction=0).item()


@pytest.mark.parametrize(("name", "variant"), NETWORKS)
@settings(max_examples=12, deadline=None)
@given(samples=st.integers(1, 3), height=SIZES, width=SIZES)
def test_every_size_agrees_with_pytorch(
    name: str, variant: str, samples: int, height: int, width: int
) -> None:
    y = image(samples, height, width)
    with torch.no_grad():
        expected = network(name, variant)(y)
    difference = (onnx_network(name, variant)(y) - expected).abs().max().item()
    assert difference <= 1e-4 * spread(y)


@pytest.mark.parametrize(("name", "variant"), NETWORKS)
@settings(max_examples=12, deadline=None)
@given(gain=gains, offset=offsets, height=SIZES, width=SIZES)
def test_exported_files_are_equivariant(
    name: str, variant: str, gain: float, offset: float, height: int, width: int
) -> None:
    y = image(1, height, width).double()
    net = onnx_network(name, variant)
    shift = offset * gain * spread(y)
    output = net((gain * y + shift).float()).double()
    error = (output - (gain * net(y.float()).double() + shift)).abs().max().item()
    assert error <= 1e-3 * gain * spread(y)


@settings(max_examples=12, deadline=None)
@given(gain=gains, offset=offsets)
def test_maps_are_inputs_with_sigma(gain: float, offset: float) -> None:
    net, y = onnx_network(*TOLD, **MAPS), image(2, 13, 10)
    assert (net.takes_sigma, net.takes_correlation) == ("optional", True)
    sigma = 0.1 + image(2, 10, 13).transpose(-1, -2)
    maps = torch.cat((sigma, 2 * sigma, 1.5 * sigma), 1)
    inside: Any = network(*TOLD[:2], **MAPS)
    with torch.no_grad():
        expected = inside.with_maps(y, maps)
    torch.testing.assert_close(net.with_maps(y, maps), expected, atol=1e-5, rtol=0)
    moved = net.with_maps(gain * y + gain * offset, gain * maps)
    assert (moved - (gain * expected + gain * offset)).abs().max() <= 1e-3 * gain * spread(y)


def test_without_maps_the_noise_is_not_known() -> None:
    net, y = onnx_network(*TOLD[:2], **MAPS), image(1, 9, 17)
    assert net.takes_sigma == "never"
    with torch.no_grad():
        expected = network(*TOLD[:2], **MAPS)(y)
    torch.testing.assert_close(net(y), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(onnx_network(*TOLD, **MAPS)(y), expected, atol=1e-5, rtol=0)


def test_the_header_says_what_the_network_is() -> None:
    net, written = network("drunet", "norm-equiv"), onnx_network("drunet", "norm-equiv")
    header = written.header
    assert header is not None
    assert (header.inputs, header.channels, header.opset) == (("image",), 1, 18)
    assert (header.stride, header.receptive_field) == (net.stride, net.receptive_field)
    assert header.law == "norm" == written.equivariance
    assert re.fullmatch("[0-9a-f]{64}", header.digest)
    assert header.digest == weights_digest(net) != weights_digest(tiny("drunet", "scale-equiv"))


def test_axes_are_named_and_nothing_of_this_machine_is_written() -> None:
    onnx = pytest.importorskip("onnx")
    data = onnx_bytes("unet", "norm-equiv-residual")
    assert b"site-packages" not in data
    assert __file__.rpartition("/tests/")[0].encode() not in data
    (given_image,) = onnx.load_from_string(data).graph.input
    names = [dim.dim_param or dim.dim_value for dim in given_image.type.tensor_type.shape.dim]
    assert names == ["batch", 1, "height", "width"]


def test_what_a_network_cannot_do_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="fdncnn takes no noise level: leave out with_sigma"):
        ExportedNetwork(tiny("fdncnn", blind=True), with_sigma=True, name="fdncnn")
    with pytest.raises(UsageError, match=r"fdncnn needs the noise level .* \(--with-sigma\)"):
        ExportedNetwork(tiny("fdncnn", blind=False), with_sigma=False, name="fdncnn")


def test_a_file_that_differs_is_noticed() -> None:
    net = ExportedNetwork(network("unet", "norm-equiv-residual"), with_sigma=False, name="mine")
    assert check_agreement(net, net) == 0
    with pytest.raises(ResultError, match="the exported mine differs from the original"):
        check_agreement(net, lambda y: net(y) + 1e-3 * (y.shape[-1] == 50))
    with pytest.raises(ResultError, match="by nan of the image"):
        check_agreement(net, lambda y: net(y) * math.nan)
