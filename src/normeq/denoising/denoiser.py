"""A denoiser made ready for images: on its device, with its tile size, in its own units.

Networks with a finite receptive field run tile by tile; every other denoiser sees whole planes.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from normeq._support import memory
from normeq.denoising.names import channels_of, is_blind, resolve
from normeq.denoising.units import Floats, Statistics
from normeq.errors import NormeqError, UsageError, reason
from normeq.images.source import ImageSource
from normeq.models import WrappedDenoiser, shipped
from normeq.nn import Normalized, fold
from normeq.nn.fast.compilation import compiled

# Memory for the activations of one call of the network, at most.
_BUDGET = 2**30
# Activations alive at once, as a multiple of the largest one (measured: 7 to 8).
_ALIVE = 8
_SMALLEST_TILE = 64
# Memory for a band of the image, as stored.
_BAND_BYTES = 2**28


@dataclass(frozen=True)
class Units:
    """The change of units around a denoiser: it sees ``(y - center) / scale``."""

    center: float
    scale: float
    back: float

    def enter(self, values: Floats) -> Floats:
        """Change into the denoiser's units."""
        return (values - self.center) / self.scale

    def leave(self, values: Floats) -> Floats:
        """Change back into the image's units."""
        return values * self.back + self.center


@dataclass(frozen=True)
class Plan:
    """How an image is cut: tiles, rows in a band, frames read together, tiles run together."""

    tile: tuple[int, int]
    rows: int
    frames: int = 1
    batch: int = 1


class Engine:
    """Anything that denoises, behind one interface.

    Parameters
    ----------
    model
        A name (see `normeq.denoising.names.resolve`), a network or a function of image and sigma.
    device
        Where networks run; ``"auto"`` takes a GPU if there is one.
    tile
        Side of the tiles in pixels; None lets memory decide.
    value_range
        What is 0 and 1 to a network that is not equivariant, in the image's units.
    compile
        Whether the network goes through `torch.compile`.
    """

    def __init__(
        self,
        model: str | Callable[..., Any] = "default",
        *,
        device: str = "auto",
        tile: int | None = None,
        value_range: tuple[float, float] | None = None,
        compile: bool = False,
    ) -> None:
        if tile is not None and tile < 1:
            raise UsageError(f"tile is {tile}, but a tile has at least 1 pixel to a side.")
        if value_range is not None and not value_range[0] < value_range[1]:
            raise UsageError(f"value_range {value_range} must go from low to high.")
        self.name = model if isinstance(model, str) else type(model).__name__
        denoiser = resolve(model) if isinstance(model, str) else model
        self._tile = tile
        self._value_range = value_range
        self.blind = is_blind(denoiser)
        self._wrapped = isinstance(denoiser, WrappedDenoiser)
        self._net = denoiser if isinstance(denoiser, nn.Module) else None
        self._function = denoiser
        self._law = _law(denoiser)
        if self._net is not None and self._law == "none" and value_range is None:
            self._law = _proven(self._net)
        self.stride = 1
        self.halo: int | None = None
        if self._net is not None:
            self._prepare(self._net, device, compile)
        if self._law == "none" and value_range is None:
            raise UsageError(
                f"{self.name} is not equivariant, so its result depends on units: say with "
                "value_range=(low, high) (--value-range LOW HIGH) which values are its 0 and 1."
            )

    def _prepare(self, net: nn.Module, device: str, compile: bool) -> None:
        if channels_of(net) != 1:
            raise UsageError(
                f"{self.name} takes {channels_of(net)} channels; images are denoised channel by "
                "channel, by a network of one."
            )
        # The statistics of the plane do what the wrapper would: its inner network has a reach.
        local = net.inner if isinstance(net, WrappedDenoiser) else net
        self.halo = getattr(local, "receptive_field", None)
        if self.halo is not None:
            self.stride = int(getattr(local, "stride", 1))
        self._device = _device(device)
        self._net = fold(local).to(self._device)
        self._forward = compiled(self._net) if compile else self._net
        parameter = next(self._net.parameters(), None)
        self._dtype = torch.float32 if parameter is None else parameter.dtype

    @property
    def identity(self) -> str:
        """A digest of the denoiser and its options: equal for equal results."""
        digest = hashlib.sha256(f"{self.name} {self._value_range} {self._law}".encode())
        if self._net is not None:
            for name, tensor in self._net.state_dict().items():
                digest.update(name.encode())
                digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def check_sigma(self, sigma: ArrayLike | None) -> None:
        """Refuse a noise level that the denoiser does not take, or the lack of one it needs."""
        if sigma is None:
            if self.blind is False:
                raise UsageError(
                    f"{self.name} needs the noise level: pass sigma, in the units of the image "
                    "(normeq.estimate_sigma estimates it)."
                )
            return
        if self.blind:
            raise UsageError(f"{self.name} is blind: leave sigma out, or use another model.")
        levels = np.asarray(sigma, dtype=np.float64)
        if not np.isfinite(levels).all() or (levels < 0).any():
            raise UsageError(f"sigma is {sigma}, but a noise level is a number from 0 up.")

    # Units -----------------------------------------------------------------------------------

    def units(self, plane: Statistics, sigma: float | None, source: ImageSource) -> Units:
        """Choose the units in which the denoiser sees a plane."""
        if self._law == "norm":
            scale = plane.spread or sigma or 1.0
            # What a wrapper makes of a constant plane is that plane.
            return Units(plane.mean, scale, plane.spread if self._wrapped else scale)
        if self._value_range is not None:
            low, high = ((value - source.offset) / source.gain for value in self._value_range)
            return Units(low, high - low, high - low)
        zero = -source.offset / source.gain  # the stored number that means 0
        if self._law == "scale":
            scale = plane.spread or abs(plane.mean - zero) or 1.0
        else:  # a function gets the image in its own units
            scale = 1 / source.gain
        return Units(zero, scale, scale)

    # Tiles -----------------------------------------------------------------------------------

    def plan(self, source: ImageSource) -> Plan:
        """Choose tiles for an image: the whole plane if memory allows it."""
        height, width = source.height, source.width
        if self._net is None or self.halo is None:
            return Plan((height, width), height)  # it sees whole planes
        limit = self._pixels_at_once()
        if self._tile is not None:
            tile = (min(self._tile, height), min(self._tile, width))
        elif height * width <= limit:
            tile = (height, width)
        else:
            tile = self._largest_tile(width, limit)
        row_bytes = width * source.samples * source.dtype.itemsize
        rows = source.band_rows or min(tile[0], max(self.stride, _BAND_BYTES // row_bytes))
        # A quarter of what fits is the fastest (measured), and leaves room for the rest.
        batch = max(1, limit // 4 // ((tile[0] + 2 * self.halo) * (tile[1] + 2 * self.halo)))
        whole = rows >= height and tile == (height, width)
        return Plan(tile, rows, max(1, batch // source.samples) if whole else 1, batch)

    def _largest_tile(self, width: int, limit: int) -> tuple[int, int]:
        """Return a tile whose halo costs little and whose activations stay near the processor.

        Half the side that memory allows is the fastest (measured), if that is not all halo.
        """
        halo = self.halo or 0
        most = math.isqrt(limit)
        seen = min(most, max(most // 2, 6 * halo))
        side = max(_SMALLEST_TILE, seen - 2 * halo) // self.stride * self.stride
        if width <= side:  # no halo to the left and right: more rows fit
            return max(side, seen**2 // width - 2 * halo), width
        return side, side

    def _pixels_at_once(self) -> int:
        """Return how many pixels fit into the memory for one call of the network."""
        free = memory.available()
        if self._device.type == "cuda":
            free = torch.cuda.mem_get_info(self._device)[0]
        budget = min(_BUDGET, free // 4)
        return max(_SMALLEST_TILE**2, budget // (_ALIVE * self._bytes_per_pixel()))

    def _bytes_per_pixel(self) -> int:
        """Measure the largest activation on a small image, in bytes for each of its pixels."""
        if not hasattr(self, "_measured"):
            side = max(_SMALLEST_TILE, 2 * self.stride)
            sizes = [1.0]

            def record(module: nn.Module, inputs: Any, output: Any) -> None:
                if isinstance(output, torch.Tensor):
                    sizes.append(output.nbytes / side**2)

            assert self._net is not None
            hooks = [part.register_forward_hook(record) for part in self._net.modules()]
            example = torch.zeros(1, 1, side, side, dtype=self._dtype, device=self._device)
            try:
                with torch.inference_mode():
                    levels = [example.new_ones(1)] if self.blind is False else []
                    self._net(example, *levels)
            finally:
                for hook in hooks:
                    hook.remove()
            self._measured = math.ceil(max(sizes))
        return self._measured

    # Running ---------------------------------------------------------------------------------

    def run(self, tiles: Sequence[Floats], sigmas: Sequence[float] | None) -> NDArray[Any]:
        """Denoise tiles of one shape, in the denoiser's units."""
        if self._net is None:
            extra = [()] * len(tiles) if sigmas is None else [(sigma,) for sigma in sigmas]
            parts = zip(tiles, extra, strict=True)
            return np.stack([np.asarray(self._function(tile, *more)) for tile, more in parts])
        batch = torch.from_numpy(np.stack(tiles)[:, None]).to(self._device, self._dtype)
        with torch.inference_mode():
            if sigmas is None:
                output = self._forward(batch)
            else:
                levels = torch.tensor(list(sigmas), dtype=self._dtype, device=self._device)
                output = self._forward(batch, levels)
        result: NDArray[Any] = output[:, 0].cpu().numpy()
        return result


def engine_for(
    model: str | Callable[..., Any],
    *,
    device: str,
    tile: int | None,
    value_range: tuple[float, float] | None,
) -> Engine:
    """Return an `Engine`; those of shipped models, whose weights never change, are kept."""
    make = _kept_engine if isinstance(model, str) and model in shipped() else Engine
    limits = None if value_range is None else (float(value_range[0]), float(value_range[1]))
    return make(model, device=device, tile=tile, value_range=limits)


@lru_cache(maxsize=4)
def _kept_engine(model: str, **options: Any) -> Engine:
    return Engine(model, **options)


def default_model(model: str | Callable[..., Any], sigma: ArrayLike | None) -> Any:
    """Return the model to use: of the two defaults, the one that takes sigma if it is given.

    >>> default_model("default", 12.0)
    'default-sigma'
    """
    return "default-sigma" if model == "default" and sigma is not None else model


def _law(denoiser: Callable[..., Any]) -> str:
    """Return how a denoiser follows a change of units; functions choose their own."""
    if isinstance(denoiser, nn.Module):
        default = "norm" if isinstance(denoiser, Normalized) else "none"
        return str(getattr(denoiser, "equivariance", default))
    return "function"


def _proven(net: nn.Module) -> str:
    """Return the law that a network follows by proof: it may be a converted one, or the user's."""
    from normeq.certification import Status, certify

    try:
        certificate = certify(copy.deepcopy(net).eval())
    except NormeqError:
        return "none"
    for law, status in (("norm", certificate.norm), ("scale", certificate.scale)):
        if status is Status.PROVEN:
            return law
    return "none"


def _device(name: str) -> torch.device:
    if name != "auto":
        try:
            return torch.empty(0, device=name).device
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise UsageError(f"device {name!r} cannot be used: {reason(error)}.") from error
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
