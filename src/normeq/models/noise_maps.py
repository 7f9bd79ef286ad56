"""What a network is told about the noise: maps beside the image, in the image's units."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from normeq.errors import UsageError

#: Whether a network takes sigma.
TakesSigma = Literal["never", "optional", "always"]
TAKES_SIGMA: tuple[TakesSigma, ...] = get_args(TakesSigma)

#: The smallest sigma inside a map, as a share of the map's mean.
SIGMA_FLOOR = 0.02


def takes_sigma_of(blind: bool) -> TakesSigma:
    """Return what ``blind=`` stands for: a blind network never takes sigma, others always do.

    Examples
    --------
    >>> takes_sigma_of(blind=False)
    'always'
    """
    return "never" if blind else "always"


def sigma_map(sigma: float | Tensor, x: Tensor) -> Tensor:
    """Spread a noise level, or one for each image, over a map ``(N, 1, H, W)``.

    Maps ``(N, 1, H, W)`` or ``(N, C, H, W)`` pass through.
    """
    sigma = torch.as_tensor(sigma, dtype=x.dtype, device=x.device)
    samples, channels, *size = x.shape
    if sigma.ndim <= 1:
        if sigma.numel() not in (1, samples):
            raise UsageError(f"{sigma.numel()} values of sigma do not fit {samples} images.")
        return sigma.reshape(-1, 1, 1, 1).expand(samples, 1, *size)
    shapes = [(samples, count, *size) for count in dict.fromkeys((1, channels))]
    if tuple(sigma.shape) not in shapes:
        expected = " or ".join(str(shape) for shape in shapes)
        raise UsageError(
            f"the noise map has shape {tuple(sigma.shape)}, but must have shape {expected}."
        )
    return sigma


def floored(sigma: Tensor) -> Tensor:
    """Raise the values of each map to `SIGMA_FLOOR` times its mean.

    ``floored(λ·σ) = λ·floored(σ)`` for ``λ > 0``. A map that is zero everywhere, for noise of
    unknown level, stays zero.

    Parameters
    ----------
    sigma
        Maps of whole images, of shape ``(N, C, H, W)``. The mean is that of each image, so the
        maps of tiles are cut from the result.

    Examples
    --------
    >>> floored(torch.tensor([[[[0.0, 2.0]]]]))
    tensor([[[[0.0200, 2.0000]]]])
    """
    return torch.maximum(sigma, SIGMA_FLOOR * sigma.mean((1, 2, 3), keepdim=True))


def correlation_maps(correlation: Tensor | None, sigma: Tensor) -> Tensor:
    """Return ``sigma · (1 + correlation length)`` for each axis, shape ``(N, 2, H, W)``.

    Noise is white unless something else is known, and lengths are not negative: the maps are
    nowhere below sigma. Where sigma is not known, neither are they.

    Parameters
    ----------
    correlation
        Such maps, or None for white noise.
    sigma
        The floored map of sigma; the mean over its channels counts.
    """
    white = sigma.mean(1, keepdim=True)
    shape = (white.shape[0], 2, *white.shape[-2:])
    if correlation is None:
        return white.expand(shape)
    correlation = torch.as_tensor(correlation, dtype=sigma.dtype, device=sigma.device)
    if tuple(correlation.shape) != shape:
        raise UsageError(
            f"a correlation map of shape {tuple(correlation.shape)} must have shape {shape}: "
            "one map for each axis, Y then X."
        )
    known = white > 0  # everywhere or, for a whole sample, nowhere: sigma is floored
    return torch.where(known, torch.maximum(correlation, white), torch.zeros_like(correlation))
