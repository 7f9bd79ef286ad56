"""Networks behind the interface of denoisers: folded, on their device, within memory."""

from __future__ import annotations

import copy
import hashlib
import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from normeq import models
from normeq._support import memory
from normeq.denoising.denoiser import Denoiser, Floats
from normeq.denoising.introspection import (
    channels_of,
    declared_law,
    find_device,
    proven_law,
    takes_sigma,
    weights_digest,
)
from normeq.denoising.tiles import SMALLEST_TILE
from normeq.errors import UsageError
from normeq.nn import fold
from normeq.nn.fast.compilation import compiled

# Memory for the activations of one call of a network, at most.
_BUDGET = 2**30
# Activations alive at once, as a multiple of the largest one (measured: 7 to 8).
_ALIVE = 8
# A small tile is computed by another kernel, and rounded otherwise, alone than among others: up to
# this many pixels it never runs alone, so that a plane has the same bytes in a stack.
_SMALL_TILE = 128**2


class NetworkDenoiser(Denoiser):
    """A torch network, folded and on its device.

    Parameters
    ----------
    net
        Left as it is: a folded copy runs.
    name
        What messages call it.
    device
        As torch names it; ``"auto"`` takes a GPU if there is one.
    compile
        Whether the network goes through `torch.compile`.
    prove
        Whether to look for a proof if the network does not declare how it follows a change of
        units.
    """

    def __init__(
        self,
        net: nn.Module,
        name: str,
        *,
        device: str = "auto",
        compile: bool = False,
        prove: bool = True,
    ) -> None:
        self.name = name
        self.channels = channels_of(net)
        self.takes_sigma = takes_sigma(net)
        self.takes_maps = self.takes_sigma != "never"
        self.takes_correlation = bool(getattr(net, "takes_correlation", False))
        self.offset_per_channel = bool(getattr(net, "separate_channels", False))
        self.keeps_constants = isinstance(net, models.WrappedDenoisingNetwork)
        self.law = declared_law(net)
        if self.law == "none" and prove:
            self.law = proven_law(net)
        self.can_be_stabilised = self.law == "norm"
        # The statistics of the plane do what the wrapper would: its inner network has a reach.
        local = net.inner if isinstance(net, models.WrappedDenoisingNetwork) else net
        self.halo = getattr(local, "receptive_field", None)
        self.stride = int(getattr(local, "stride", 1)) if self.halo is not None else 1
        self._unfolded: nn.Module | None = local
        self._place(fold(local), device, compile)
        parameter = next(self._net.parameters(), None)
        self._dtype = torch.float32 if parameter is None else parameter.dtype
        self._bytes_per_pixel: int | None = None

    def _place(self, net: nn.Module, device: str, compile: bool) -> None:
        self._wanted = (device, compile)
        self._device = find_device(device)
        self._net = net.to(self._device)
        self._forward = compiled(self._net) if compile else self._net

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs, where it may find another device."""
        on_cpu = self._device.type == "cpu"
        net = self._net if on_cpu else copy.deepcopy(self._net).cpu()
        return self.__dict__ | {"_net": net, "_forward": None, "_unfolded": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._place(self._net, *self._wanted)

    @property
    def identity(self) -> str:
        together = super().identity + weights_digest(self._net)
        return hashlib.sha256(together.encode()).hexdigest()

    def run(
        self,
        tiles: Floats,
        sigma: Floats | None = None,
        lengths: Floats | None = None,
    ) -> NDArray[Any]:
        if len(tiles) == 1 and math.prod(tiles.shape[-2:]) <= _SMALL_TILE:
            twice = [None if each is None else np.repeat(each, 2, 0) for each in (sigma, lengths)]
            return self.run(np.repeat(tiles, 2, 0), *twice)[:1]
        given = self._tensor(tiles)
        with torch.inference_mode():
            if sigma is None:
                output = self._forward(given)
            elif sigma.ndim == 1 and lengths is None:
                output = self._forward(given, self._tensor(sigma))
            else:
                output = self._run_with_maps(given, sigma, lengths)
        result: NDArray[Any] = output.cpu().numpy()
        return result

    def _run_with_maps(
        self,
        given: torch.Tensor,
        sigma: Floats,
        lengths: Floats | None,
    ) -> torch.Tensor:
        """Run with a level for each pixel, and ``σ·(1 + length)`` along rows and columns."""
        levels = self._tensor(sigma)
        if not isinstance(self._net, models.DenoisingNetwork):  # a network of the user
            output: torch.Tensor = self._forward(given, maps_of_tiles(given, levels))
            return output
        spread = None if lengths is None else self._tensor(lengths)
        maps = maps_of_tiles(given, levels, spread, self._net.offsets, self.takes_correlation)
        # The call of a whole image would raise the smallest levels again, tile by tile.
        return self._net.with_maps(given, maps)

    def remove_unit_noise(self, images: torch.Tensor) -> torch.Tensor:
        net = self._differentiable()
        given = images.to(self._device, self._dtype)
        output: torch.Tensor = net(given) if self.takes_sigma == "never" else net(given, 1.0)
        return output.to(images)

    @lru_cache(maxsize=1)  # noqa: B019 - the network is kept as long as the denoiser
    def _differentiable(self) -> nn.Module:
        """Return a copy of the network as it was given: the folded one has no gradients."""
        if self._unfolded is None:
            raise UsageError(f"{self.name} has no gradients in another process.")
        return copy.deepcopy(self._unfolded).eval().requires_grad_(False).to(self._device)

    def _tensor(self, values: Floats) -> torch.Tensor:
        return torch.from_numpy(values).to(self._dtype).to(self._device)

    def pixels_at_once(self) -> int:
        free = memory.available()
        if self._device.type == "cuda":
            free = torch.cuda.mem_get_info(self._device)[0]
        if self._bytes_per_pixel is None:
            side = max(SMALLEST_TILE, 2 * self.stride)
            shape = (1, self.channels, side, side)
            example = torch.zeros(shape, dtype=self._dtype, device=self._device)
            levels = [example.new_ones(1)] if self.takes_sigma == "always" else []
            self._bytes_per_pixel = measure_bytes_per_pixel(self._net, example, *levels)
        return pixels_within(free, self._bytes_per_pixel)


def maps_of_tiles(
    tiles: torch.Tensor,
    sigma: torch.Tensor,
    lengths: torch.Tensor | None = None,
    offsets: int = 1,
    correlation: bool = False,
) -> torch.Tensor:
    """Return maps of ``σ`` and, for a network that takes it, ``σ·(1 + length)`` along each axis.

    Parameters
    ----------
    tiles
        Of shape ``(N, C, H, W)``.
    sigma
        Levels ``(N,)``, one for each map that the network takes, ``(N, offsets)``, or maps
        ``(N, 1, H, W)``.
    lengths
        Of shape ``(N, 2)``; None: the noise is white.
    offsets
        How many maps of sigma the network takes.
    correlation
        Whether it takes the others.
    """
    level = sigma.reshape(len(tiles), -1, *sigma.shape[2:] or (1, 1))
    levels = level.expand(-1, offsets, *tiles.shape[-2:])
    if not correlation:
        return levels
    spread = 0.0 if lengths is None else lengths[:, :, None, None]
    axes = levels.mean(1, keepdim=True) * (1 + spread)
    return torch.cat((levels, axes.expand(-1, 2, -1, -1)), 1)


def pixels_within(free: int, bytes_per_pixel: int) -> int:
    """Return how many pixels fit into the memory for one call.

    Parameters
    ----------
    free
        Bytes that nobody uses.
    bytes_per_pixel
        See `measure_bytes_per_pixel`.
    """
    return max(SMALLEST_TILE**2, min(_BUDGET, free // 4) // (_ALIVE * bytes_per_pixel))


def measure_bytes_per_pixel(net: nn.Module, *example: torch.Tensor) -> int:
    """Return the size of a network's largest activation, for each pixel of an example."""
    sizes = [1.0]
    pixels = math.prod(example[0].shape[-2:]) * len(example[0])

    def record(module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            sizes.append(output.nbytes / pixels)

    hooks = [part.register_forward_hook(record) for part in net.modules()]
    try:
        with torch.inference_mode():
            net(*example)
    finally:
        for hook in hooks:
            hook.remove()
    return math.ceil(max(sizes))
