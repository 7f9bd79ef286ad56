"""Variance stabilisation learned from the noisy image, for noise that no formula describes.

After Noise2VST (Herbreteau and Unser, ICCV 2025): a rising piecewise linear function around a
frozen denoiser, fitted so that pixels hidden from the denoiser are predicted best. Hidden pixels
tell nothing about the truth only if their noise is independent of their neighbours': the noise
has to be white.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from normeq.errors import InputError, UsageError
from normeq.noise.estimation import estimate_noise_of
from normeq.noise.sampling import Reader, read_regions, reader_of
from normeq.noise.stabilisation import Scaling, Stabilisation

Floats = NDArray[np.float64]

_KNOTS = 96
# Quantiles of the image between which the function has its knots; it goes on as straight lines.
_ENDS = (0.0005, 0.9995)
# Normalised values are rounded to this, so that images that differ by their units, and by rounding,
# are the same to the fit.
_GRAIN = 2.0**-16
_PATCH = 64
_BATCH = 4
# Every pixel of a grid of this step is hidden at a time.
_STRIDE = 4
# The logarithm of a slope can change by this much at the first rate, of three; no step exceeds
# the fastest.
_TRAVEL = 2.0
_FASTEST = 0.05
_SMALLEST_RISE = 1e-6


@dataclass(frozen=True, eq=False)
class LearnedStabilisation:
    """A rising piecewise linear function of pixel values, and its corrected inverse.

    Learned on ``λ·y + μ`` the knots are ``λ·values + μ``, and `stable` is the same.

    Parameters
    ----------
    values, stable
        Knots, in the units of the image and stabilised; both rise.
    correction
        The inverse adds ``correction[0] · z + correction[1]`` to undo the bias of the denoiser's
        average, in units of the range of `values`.
    """

    values: Floats
    stable: Floats
    correction: tuple[float, float] = (0.0, 0.0)

    def forward(self, values: ArrayLike) -> Floats:
        """Stabilise noisy values."""
        return _piecewise(np.asarray(values, dtype=np.float64), self.values, self.stable)

    def inverse(self, values: ArrayLike) -> Floats:
        """Turn denoised stabilised values into means of the original ones."""
        stable = np.asarray(values, dtype=np.float64)
        slope, shift = self.correction
        extent = float(self.values[-1] - self.values[0])
        return _piecewise(stable, self.stable, self.values) + extent * (slope * stable + shift)


def learn_stabilisation(
    image: ArrayLike,
    denoise: Callable[[Tensor], Tensor],
    *,
    start: Stabilisation | None = None,
    steps: int = 200,
) -> LearnedStabilisation:
    """Learn the transform of an image around a denoiser; the same call gives the same transform.

    Parameters
    ----------
    image
        Shape ``(..., height, width)``; pixels that are NaN or infinite are left out.
    denoise
        Removes noise of standard deviation 1 from images ``(N, 1, H, W)``; differentiable with
        respect to them. Nothing in it changes.
    start
        The transform to begin with, such as the generalized Anscombe transform of an estimated
        noise model, from which half the steps do; by default that of noise of one level.
    steps
        How often the transform is improved.
    """
    return learn_stabilisation_of(*reader_of(image), denoise, start=start, steps=steps)


def learn_stabilisation_of(
    read: Reader,
    shape: tuple[int, ...],
    denoise: Callable[[Tensor], Tensor],
    *,
    start: Stabilisation | None = None,
    steps: int = 200,
) -> LearnedStabilisation:
    """Learn the transform of an image that is read in parts; see `learn_stabilisation`.

    Parameters
    ----------
    read, shape
        See `normeq.noise.estimate_noise_of`; the same regions are read.
    denoise, start, steps
        See `learn_stabilisation`.
    """
    if steps < 1:
        raise UsageError(f"steps is {steps}; it must be at least 1.")
    planes = read_regions(read, shape)
    finite = np.concatenate([plane[np.isfinite(plane)] for plane in planes])
    low, high = (float(end) for end in np.quantile(finite, _ENDS))
    if not high > low:
        raise InputError("nearly all pixels of the image are equal: there is nothing to stabilise.")
    if start is None:
        uniform = estimate_noise_of(read, shape, signal_dependent=False)
        start = Scaling(uniform.mean_sigma or high - low, low)
    knots, stable = _first_knots(start, low, high)
    patches = _MaskedPatches([_normalised(plane, low, high) for plane in planes])
    spline = _Spline(knots, stable)
    parameters = list(spline.parameters())
    third = max(1, steps // 3)
    optimizer = torch.optim.Adam(parameters, lr=min(_FASTEST, _TRAVEL / third))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, third, gamma=0.1)
    for _ in range(steps):
        loss = _blind_spot_loss(spline, denoise, *patches.draw())
        # Gradients of the function alone: those of the denoiser's weights are not needed.
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        schedule.step()
    slope, shift = (float(number) for number in spline.correction.detach())
    return LearnedStabilisation(
        low + (high - low) * knots,
        spline.heights().detach().numpy().astype(np.float64),
        (slope, shift),
    )


def _first_knots(start: Stabilisation, low: float, high: float) -> tuple[Floats, Floats]:
    """Place knots between 0 and 1, evenly after the first transform, and give their heights."""
    fine = np.linspace(0.0, 1.0, 64 * _KNOTS)
    heights = start.forward(low + (high - low) * fine)
    even = np.linspace(heights[0], heights[-1], _KNOTS)
    rising = np.concatenate([[True], np.diff(np.maximum.accumulate(heights)) > 0])
    knots = np.round(np.interp(even, heights[rising], fine[rising]) / _GRAIN) * _GRAIN
    knots, first = np.unique(knots, return_index=True)
    return knots, even[first]


def _normalised(plane: Floats, low: float, high: float) -> NDArray[np.float32]:
    normal = np.round((plane - low) / (high - low) / _GRAIN) * _GRAIN
    return normal.astype(np.float32)


class _MaskedPatches:
    """Patches of the image and the phase of the grid of hidden pixels, in a fixed order."""

    def __init__(self, planes: list[NDArray[np.float32]]) -> None:
        self._planes = [plane for plane in planes if np.isfinite(plane).any()]
        self._side = min(_PATCH, *(min(plane.shape) for plane in self._planes))
        self._rng = np.random.default_rng(0)

    def draw(self) -> tuple[Tensor, int, int]:
        patches = torch.from_numpy(np.stack([self._patch() for _ in range(_BATCH)]))[:, None]
        row, column = (int(phase) for phase in self._rng.integers(_STRIDE, size=2))
        return patches, row, column

    def _patch(self) -> NDArray[np.float32]:
        rng, side = self._rng, self._side
        plane = self._planes[rng.integers(len(self._planes))]
        top, left = (int(rng.integers(extent - side + 1)) for extent in plane.shape)
        patch = plane[top : top + side, left : left + side]
        if rng.random() < 0.5:
            patch = patch.T
        patch = patch[:: rng.choice((-1, 1)), :: rng.choice((-1, 1))]
        known = np.isfinite(patch)
        if known.all():
            return patch
        return np.where(known, patch, np.median(patch[known]) if known.any() else 0.5)


class _Spline(torch.nn.Module):
    """The function: knots that stay, heights that rise."""

    knots: Tensor

    def __init__(self, knots: Floats, heights: Floats) -> None:
        super().__init__()
        self.register_buffer("knots", torch.from_numpy(knots).float())
        rises = torch.from_numpy(np.diff(heights)).float()
        self.first = torch.nn.Parameter(torch.tensor([float(heights[0])]))
        self.log_rises = torch.nn.Parameter((rises - _SMALLEST_RISE).clamp_min(1e-9).log())
        self.correction = torch.nn.Parameter(torch.zeros(2))

    def heights(self) -> Tensor:
        rises = self.log_rises.exp() + _SMALLEST_RISE
        return torch.cat([self.first, self.first + rises.cumsum(0)])

    def stabilised(self, values: Tensor) -> Tensor:
        return _between(values, self.knots, self.heights())

    def restored(self, stable: Tensor) -> Tensor:
        slope, shift = self.correction.unbind()
        return _between(stable, self.heights(), self.knots) + slope * stable + shift


def _blind_spot_loss(
    spline: _Spline, denoise: Callable[[Tensor], Tensor], noisy: Tensor, row: int, column: int
) -> Tensor:
    """Return how well hidden pixels are predicted from the mean of their four neighbours."""
    stable = spline.stabilised(noisy)
    padded = torch.nn.functional.pad(stable, (1, 1, 1, 1), mode="reflect")
    around = padded[..., 1:-1, :-2] + padded[..., 1:-1, 2:]
    around = (around + padded[..., :-2, 1:-1] + padded[..., 2:, 1:-1]) / 4
    hidden = torch.zeros_like(stable)
    hidden[..., row::_STRIDE, column::_STRIDE] = 1.0
    restored = spline.restored(denoise(torch.lerp(stable, around, hidden)))
    error = (restored - noisy)[..., row::_STRIDE, column::_STRIDE]
    return (error**2).mean()


def _between(values: Tensor, knots: Tensor, heights: Tensor) -> Tensor:
    """Interpolate, and extrapolate as straight lines."""
    with torch.no_grad():
        right = torch.searchsorted(knots, values.contiguous()).clamp(1, len(knots) - 1)
    left = right - 1
    share = (values - knots[left]) / (knots[right] - knots[left])
    return torch.lerp(heights[left], heights[right], share)


def _piecewise(values: Floats, knots: Floats, heights: Floats) -> Floats:
    right = np.clip(np.searchsorted(knots, values), 1, len(knots) - 1)
    slopes = np.diff(heights) / np.diff(knots)
    result: Floats = heights[right - 1] + slopes[right - 1] * (values - knots[right - 1])
    return result
