"""Equivariance for any function, by normalising around it (the paper's proposition 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from normeq.errors import UsageError

NormalizationMode = Literal["min-max", "mean-std"]


class Normalized(nn.Module):
    """Normalise, apply any function, undo: ``g(λ·y + μ, λ·σ) = λ·g(y, σ) + μ`` for every `f`.

    ``g = T⁻¹ ∘ f ∘ T`` with ``T(y) = (b - a)·(y - center)/spread + a``. Center and spread are
    those of each sample on its own, exactly: no epsilon is added, and a constant image comes
    back unchanged. They are global, so one bright pixel changes the whole output.

    Parameters
    ----------
    f
        A network or any callable ``f(y)``, ``f(y, sigma)`` or ``f(y, sigma, correlation)``.
    mode
        ``"min-max"``: the sample fills [a, b]. ``"mean-std"``: it gets mean `a` and standard
        deviation ``b - a``.
    a, b
        The range to normalise to, ``a < b``.

    Examples
    --------
    >>> import torch
    >>> g = Normalized(torch.sigmoid)
    >>> y = torch.rand(2, 1, 4, 4, dtype=torch.float64)
    >>> torch.allclose(g(7 * y + 1000), 7 * g(y) + 1000)
    True
    """

    def __init__(
        self,
        f: Callable[..., Tensor],
        mode: NormalizationMode = "min-max",
        a: float = 0.0,
        b: float = 1.0,
    ) -> None:
        super().__init__()
        if mode not in get_args(NormalizationMode):
            raise UsageError(f"mode {mode!r} is unknown: use 'min-max' or 'mean-std'.")
        if not a < b:
            raise UsageError(f"a={a:g} must be smaller than b={b:g}.")
        self.inner = f
        self.mode = mode
        self.a = a
        self.b = b

    def forward(
        self,
        y: Tensor,
        sigma: float | Tensor | None = None,
        correlation: Tensor | None = None,
    ) -> Tensor:
        """Apply to samples of shape ``(N, ...)``; sigma and correlation in the units of `y`.

        Tensors of whole numbers among them have no units, and are passed on as they are.
        """
        center, spread = sample_statistics(y, self.mode)
        gain = (self.b - self.a) / torch.where(spread == 0, math.inf, spread)
        normal = (y - _like(center, y)) * _like(gain, y) + self.a

        def scaled(level: float | Tensor) -> Tensor:
            if isinstance(level, Tensor) and not level.is_floating_point():
                return level  # a number of steps or a mask, which has no units
            level = torch.as_tensor(level, dtype=y.dtype, device=y.device)
            return level * (_like(gain, level) if level.ndim > 1 else gain)

        levels = [scaled(level) for level in (sigma, correlation) if level is not None]
        out = self.inner(normal, *levels)
        # A spread of zero leaves only the center: the constant image, whatever f says.
        back = spread / (self.b - self.a)
        return (out - self.a) * _like(back, out) + _like(center, out)

    def extra_repr(self) -> str:
        """Describe the normalisation in a printed network."""
        return f"mode={self.mode!r}, a={self.a:g}, b={self.b:g}"


def sample_statistics(y: Tensor, mode: NormalizationMode) -> tuple[Tensor, Tensor]:
    """Center and spread of each sample, of shape ``(N,)``; exactly 0 for a constant."""
    flat = y.flatten(1)
    low, high = flat.amin(1), flat.amax(1)
    if mode == "min-max":
        return low, high - low
    constant = low == high
    center = torch.where(constant, low, flat.mean(1))
    variance = (flat - center[:, None]).square().mean(1)
    # The root of infinity stands in for that of 0, whose gradient is infinite: unlike 1, neither
    # 0 nor infinity sets a scale.
    spread = torch.where(constant, 0.0, torch.where(constant, math.inf, variance).sqrt())
    return center, spread


def _like(per_sample: Tensor, other: Tensor) -> Tensor:
    """Reshape values of shape ``(N,)`` so that they broadcast over a tensor of N samples."""
    return per_sample.reshape(-1, *[1] * (other.ndim - 1))


def normalized(
    f: Callable[..., Any], mode: NormalizationMode = "min-max", a: float = 0.0, b: float = 1.0
) -> Callable[..., Any]:
    """Make any function equivariant: ``g(λ·y + μ, λ·σ) = λ·g(y, σ) + μ``.

    A `torch.nn.Module` gives the layer `Normalized`, with statistics for each sample of a batch.
    Any other callable is taken as a function of one image, array or tensor, in any layout.

    Parameters
    ----------
    f, mode, a, b
        See `Normalized`.

    Examples
    --------
    >>> import numpy as np
    >>> g = normalized(np.tanh, "mean-std")
    >>> y = np.random.default_rng(0).random((8, 8))
    >>> np.allclose(g(7 * y + 1000), 7 * g(y) + 1000)
    True
    """
    if isinstance(f, nn.Module):
        return Normalized(f, mode, a, b)

    def of_image(y: Any, sigma: float | None = None) -> Any:
        numpy = not isinstance(y, Tensor)

        def of_batch(batch: Tensor, batch_sigma: Tensor | None = None) -> Tensor:
            image = batch[0].numpy() if numpy else batch[0]
            extra = () if batch_sigma is None else (float(batch_sigma),)
            return torch.as_tensor(f(image, *extra))[None]

        batch = torch.as_tensor(np.array(y) if numpy else y)[None]
        if not batch.is_floating_point():
            batch = batch.double()
        out = Normalized(of_batch, mode, a, b)(batch, sigma)[0]
        return out.numpy() if numpy else out

    return of_image
