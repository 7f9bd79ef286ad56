"""Tiny networks written as ONNX, once for all tests of a run."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from helpers.small_networks import tiny
from torch import nn

from normeq.denoising.onnx_network import OnnxNetwork
from normeq.exporting.onnx_writer import checked_onnx
from normeq.exporting.open_sizes import ExportedNetwork


@functools.cache
def network(name: str, variant: str, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    return tiny(name, variant, **options).eval()


@functools.cache
def onnx_bytes(name: str, variant: str, with_sigma: bool = False, **options: Any) -> bytes:
    pytest.importorskip("onnxscript", reason="the extra 'onnx' is not installed")
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    net = network(name, variant, **options)
    return checked_onnx(ExportedNetwork(net, with_sigma=with_sigma, name=name))


@functools.cache
def onnx_network(name: str, variant: str, with_sigma: bool = False, **options: Any) -> OnnxNetwork:
    return OnnxNetwork(f"{name}.onnx", data=onnx_bytes(name, variant, with_sigma, **options))
