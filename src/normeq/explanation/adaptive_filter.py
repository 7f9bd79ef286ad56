"""The adaptive filter of a pixel: its row of a denoiser's Jacobian.

Close to an image y, a denoiser is a weighted mean: ``f(y)[i] = Σ w[j]·y[j] + constant``. The
weights of pixel i are a row of the Jacobian. They sum to one for every normalization-equivariant
network, and the constant is zero for every scale-equivariant one, but for a multiple of the noise
level that it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from normeq.denoising.introspection import channels_of, declared_law, takes_sigma
from normeq.denoising.tiles import reach
from normeq.errors import InputError, UsageError, calling
from normeq.models import DenoisingNetwork

Floats = NDArray[np.float64]

#: Pixels, at most, of an image that a network without a finite receptive field has to see whole.
MOST_PIXELS = 2**18


@dataclass(frozen=True)
class AdaptiveFilter:
    """What one pixel of the output is made of: ``f(y)[at] = Σ weights · y[window] + constant``.

    Attributes
    ----------
    at
        Row and column of the pixel.
    window
        Rows and columns of the image that it may depend on.
    weights
        One for each pixel of the window, ``(H, W)``, or ``(C, H, W)`` if the network sees colour.
    pixels
        The image in that window, of the same shape.
    value
        The denoised pixel.
    constant
        What the network adds of its own: exactly 0 if it is linear between its kinks, and is told
        no noise level.
    noise_left
        Standard deviation of the noise in the denoised pixel, to first order, for independent
        noise of the given sigma; None without sigma.
    """

    at: tuple[int, int]
    window: tuple[slice, slice]
    weights: Floats
    pixels: Floats
    value: float
    noise_left: float | None = None

    @property
    def sum(self) -> float:
        """Sum of the weights: 1 for a normalization-equivariant network."""
        return float(self.weights.sum())

    @property
    def effective_pixels(self) -> float:
        """How many pixels are averaged, ``1 / Σ w²``: equal weights on n pixels give n."""
        energy = float(np.square(self.weights).sum())
        return float("inf") if energy == 0 else 1 / energy

    @property
    def constant(self) -> float:
        """What is left of the value when the weighted pixels are taken away."""
        # Relative to the pixel itself: a large offset of the image costs no accuracy.
        rows, columns = self._place
        origin = float(self.pixels[..., rows, columns].flat[0])
        mean = float(np.sum(self.weights * (self.pixels - origin)))
        return self.value - origin - mean + origin * (1 - self.sum)

    def in_units(self, scale: float, offset: float) -> AdaptiveFilter:
        """Return the filter for the image ``scale · y + offset``: the weights stay as they are."""
        left = None if self.noise_left is None else scale * self.noise_left
        pixels, value = scale * self.pixels + offset, scale * self.value + offset
        return replace(self, pixels=pixels, value=value, noise_left=left)

    @property
    def _place(self) -> tuple[int, int]:
        """Row and column of the pixel in the window."""
        return self.at[0] - self.window[0].start, self.at[1] - self.window[1].start


def explain(
    net: Callable[..., Any],
    image: Any,
    at: tuple[int, int],
    *,
    sigma: Any = None,
    channel: int = 0,
) -> AdaptiveFilter:
    """Return the adaptive filter of a pixel: ``weights[j] = ∂ net(image)[at] / ∂ image[j]``.

    The network alone is explained, in the units of `image`. Only the receptive field of the pixel
    is read and computed, whatever the size of the image. A network without a finite receptive
    field sees the whole image, which may have 262,144 pixels.

    Examples
    --------
    >>> import numpy as np, normeq
    >>> image = np.random.default_rng(0).normal(1000, 25, (512, 512))
    >>> filt = normeq.explain(normeq.load("default"), image, (100, 200), sigma=25)
    >>> print(f"{filt.sum:.4f}")
    1.0000
    >>> bool(filt.effective_pixels > 100 and filt.noise_left < 2.5)
    True

    Parameters
    ----------
    net
        A network, or any function of torch tensors ``(N, C, H, W)`` that can be differentiated.
    image
        Anything with a shape that is sliced like an array: NumPy, torch, dask, zarr. ``(H, W)``,
        or ``(C, H, W)`` for a network that sees colour.
    at
        Row and column.
    sigma
        Noise level in the units of the image, a number or a map; told to a network that takes it.
    channel
        Of a colour image: the channel of the output that is explained.
    """
    shape = _checked_shape(net, image, at, channel)
    window = _window(net, shape, at)
    pixels = _pixels(image, window)
    # A shift of the input changes nothing in an equivariant network but its rounding.
    shifts = isinstance(net, nn.Module) and declared_law(net) == "norm"
    origin = float(pixels.mean()) if shifts else 0.0
    place = (channel, at[0] - window[0].start, at[1] - window[1].start)
    value, gradient = _row(_called(net, sigma, shape, window), net, pixels - origin, place)
    squeezed = (0,) if len(image.shape) == 3 else (0, 1)
    weights = gradient.squeeze(squeezed)
    noise_left = None
    if sigma is not None:
        levels = np.broadcast_to(_plain(sigma), shape)[..., window[0], window[1]]
        noise_left = float(np.sqrt(np.sum(np.square(gradient[0] * levels))))
    return AdaptiveFilter(at, window, weights, pixels.squeeze(squeezed), value + origin, noise_left)


def _checked_shape(
    net: Callable[..., Any], image: Any, at: tuple[int, int], channel: int
) -> tuple[int, int, int]:
    """Return ``(C, H, W)``, after a look at what was given."""
    channels = channels_of(net)
    wanted = "(H, W)" if channels == 1 else f"({channels}, H, W)"
    shape = tuple(int(length) for length in image.shape)
    if len(shape) != (2 if channels == 1 else 3) or (channels > 1 and shape[0] != channels):
        raise InputError(f"the network takes one image of shape {wanted}, not {shape}.")
    if not (0 <= at[0] < shape[-2] and 0 <= at[1] < shape[-1]):
        raise UsageError(
            f"row {at[0]}, column {at[1]} is outside the image, which has {shape[-2]} rows and "
            f"{shape[-1]} columns."
        )
    if not 0 <= channel < channels:
        raise UsageError(f"channel {channel} does not exist: the network has {channels}.")
    return channels, shape[-2], shape[-1]


def _window(
    net: Callable[..., Any], shape: tuple[int, int, int], at: tuple[int, int]
) -> tuple[slice, slice]:
    """Return the part of the image that the pixel depends on, aligned as the network needs it."""
    field = getattr(net, "receptive_field", None)
    if field is None:
        if shape[1] * shape[2] > MOST_PIXELS:
            raise InputError(
                "a network without a finite receptive field is explained on the whole image, and "
                f"{shape[1]}x{shape[2]} is more than {MOST_PIXELS:,} pixels: crop the image."
            )
        return slice(0, shape[1]), slice(0, shape[2])
    stride = int(getattr(net, "stride", 1))
    rows, columns = (
        reach(place, place + 1, length, field, stride).read
        for place, length in zip(at, shape[1:], strict=True)
    )
    return rows, columns


def _pixels(image: Any, window: tuple[slice, slice]) -> Floats:
    pixels = _plain(image[(..., *window)])
    if not np.isfinite(pixels).all():
        raise InputError(
            "some pixels in the receptive field are NaN or infinite: choose another place."
        )
    return pixels.reshape(1, -1, *pixels.shape[-2:])


def _plain(values: Any) -> Floats:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def _called(
    net: Callable[..., Any], sigma: Any, shape: tuple[int, int, int], window: tuple[slice, slice]
) -> Callable[[Tensor], Tensor]:
    """Return the network as a function of the window alone, told the noise level if it takes it."""
    wanted = takes_sigma(net)
    if wanted == "always" and sigma is None:
        raise UsageError("the network needs the noise level: pass sigma (--sigma).")
    if wanted == "never" or sigma is None:
        return net
    level = _plain(sigma)
    if level.ndim == 0:
        return lambda x: net(x, float(level))
    level = np.broadcast_to(level, (*level.shape[:-2], *shape[1:])).reshape(1, -1, *shape[1:])

    def with_map(x: Tensor) -> Tensor:
        told = torch.from_numpy(level.copy()).to(x)
        part = told[..., window[0], window[1]]
        if not isinstance(net, DenoisingNetwork):
            output: Tensor = net(x, part)
            return output
        maps = net.noise_maps(x.new_zeros(()).expand(1, *shape), told)
        assert maps is not None
        return torch.where(part == 0, x, net.with_maps(x, maps[..., window[0], window[1]]))

    return with_map


def _row(
    function: Callable[[Tensor], Tensor],
    net: Callable[..., Any],
    pixels: Floats,
    place: tuple[int, int, int],
) -> tuple[float, Floats]:
    """Return an output pixel and its derivatives by the pixels of the window."""
    parameter = next(net.parameters(), None) if isinstance(net, nn.Module) else None
    x = torch.from_numpy(pixels)
    x = (x.float() if parameter is None else x.to(parameter)).requires_grad_()
    size = "x".join(map(str, pixels.shape[1:]))
    with torch.enable_grad(), _evaluating(net), calling("the network", f"an image of {size}"):
        output = function(x)
        if not isinstance(output, Tensor) or not output.requires_grad:
            raise UsageError(
                "the denoiser cannot be differentiated: pass a network, or a function of torch "
                "tensors."
            )
        value = output[(0, *place)]
        (gradient,) = torch.autograd.grad(value, x)
    return float(value.detach()), gradient.double().cpu().numpy()


@contextmanager
def _evaluating(net: Callable[..., Any]) -> Iterator[None]:
    """Put a network that is being trained into evaluation mode for a while."""
    if not (isinstance(net, nn.Module) and net.training):
        yield
        return
    net.eval()
    try:
        yield
    finally:
        net.train()
