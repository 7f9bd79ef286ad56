"""An ONNX file as a denoiser: tiles and halos as for any network, without PyTorch's."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from normeq._support import memory
from normeq.denoising.denoiser import Denoiser, Floats
from normeq.denoising.introspection import channels_of
from normeq.denoising.network_denoiser import maps_of_tiles, pixels_within
from normeq.denoising.onnx_network import OnnxNetwork


class OnnxDenoiser(Denoiser):
    """A network in an ONNX file, run by onnxruntime.

    Parameters
    ----------
    net
        The file.
    name
        What messages call it.
    """

    def __init__(self, net: OnnxNetwork, name: str) -> None:
        self.name = name
        self.takes_sigma = net.takes_sigma
        self.takes_maps = net.takes_sigma != "never"
        self.takes_correlation = net.takes_correlation
        self.channels = channels_of(net)
        self.halo = net.receptive_field
        self.stride = net.stride if self.halo is not None else 1
        self.law = net.equivariance
        self.offset_per_channel = net.separate_channels
        self.can_be_stabilised = self.law == "norm"
        self._net = net

    @property
    def identity(self) -> str:
        return hashlib.sha256(f"{super().identity} {self._net.digest}".encode()).hexdigest()

    def pixels_at_once(self) -> int | None:
        size = self._net.bytes_per_pixel
        return None if size is None else pixels_within(memory.available(), size)

    def run(
        self,
        tiles: Floats,
        sigma: Floats | None = None,
        lengths: Floats | None = None,
    ) -> NDArray[Any]:
        given = torch.from_numpy(np.ascontiguousarray(tiles, np.float32))
        if sigma is None:
            output: torch.Tensor = self._net(given)
            return output.numpy()
        levels = torch.from_numpy(sigma).float()
        spread = None if lengths is None else torch.from_numpy(lengths).float()
        net = self._net
        maps = maps_of_tiles(given, levels, spread, net.offsets, net.takes_correlation)
        return net.with_maps(given, maps).numpy()
