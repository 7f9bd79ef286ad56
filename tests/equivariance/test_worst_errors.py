"""The checker itself: it must pass what has a property and fail what lacks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import ndimage
from skimage import data

from normeq import assert_equivariant, equivariance_error
from normeq.equivariance import PROPERTIES
from normeq.errors import EquivarianceError, InputError, UsageError

RANDOM = np.random.default_rng(0).random((12, 10))
IMAGES = {
    "random": RANDOM,
    "constant": np.full((6, 5), 3.25),
    "zeros": np.zeros((6, 5)),
    "real": data.camera()[200:240, 200:240] / 255,
    "integer": data.coins()[:30, :30],
}


def soft_threshold_around_mean(y: Any) -> Any:
    """Wrong only where the offset brings values near zero: the case of minus the mean."""
    return np.where(np.abs(y) < 0.4, 0.0, y)


# What each function has: scale, shift.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool, bool]] = {
    "identity": (lambda y: y, True, True),
    "median": (lambda y: ndimage.median_filter(y, 3), True, True),
    "gaussian": (lambda y: ndimage.gaussian_filter(y, 1.0), True, True),
    "sort": (lambda y: np.sort(y, axis=None), True, True),
    "mean and spread": (lambda y: y.mean() + 2 * (y - y.mean()), True, True),
    "double": (lambda y: 2 * y, True, False),
    "absolute": (np.abs, True, False),
    "zero padded": (lambda y: ndimage.uniform_filter(y, 3, mode="constant"), True, False),
    "bias": (lambda y: y + 0.5, False, True),
    "sine of differences": (lambda y: y + np.sin(y - y.mean()), False, True),
    "square": (np.square, False, False),
    "clip": (lambda y: np.clip(y, 0, 1), False, False),
    "threshold": (soft_threshold_around_mean, False, False),
    "nan": (lambda y: y * np.nan, False, False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [np.float64, np.float32, torch.float64, torch.float32], ids=str)
def test_each_function_has_what_it_has(name: str, kind: Any) -> None:
    f, scale, shift = FUNCTIONS[name]
    if isinstance(kind, torch.dtype):
        image: Any = torch.tensor(RANDOM, dtype=kind)
        call = lambda y: torch.as_tensor(f(y.numpy()))  # noqa: E731
    else:
        image, call = RANDOM.astype(kind), f
    tolerance = 1e-9 if "float64" in str(kind) else 1e-3
    error = equivariance_error(call, image)
    assert (error.scale <= tolerance) == scale
    assert (error.shift <= tolerance) == shift
    assert (error.norm <= tolerance) == (scale and shift)
    for name, holds in zip(PROPERTIES, (scale, shift, scale and shift), strict=True):
        if holds:
            assert_equivariant(call, image, name)
        else:
            with pytest.raises(EquivarianceError, match=f"not {name}-equivariant: at gain"):
                assert_equivariant(call, image, name)


@pytest.mark.parametrize("name", IMAGES)
def test_every_image_serves(name: str) -> None:
    assert equivariance_error(lambda y: y, IMAGES[name]).norm < 1e-9
    assert equivariance_error(lambda y: y + 1, IMAGES[name]).scale > 1e-3
    assert equivariance_error(lambda y: 2 * y, IMAGES[name]).shift > 1e-3


def test_sigma_scales_with_the_gain() -> None:
    def shrink(y: Any, sigma: float) -> Any:
        flat = y.mean()
        return flat + np.sign(y - flat) * np.maximum(np.abs(y - flat) - sigma, 0)

    assert_equivariant(shrink, RANDOM, "norm", sigma=0.1)
    with pytest.raises(EquivarianceError, match="scale"):
        assert_equivariant(lambda y, sigma: shrink(y, 0.1), RANDOM, "scale", sigma=0.1)


def test_minus_the_mean_is_among_the_offsets() -> None:
    def thresholded_near_zero_mean(y: Any) -> Any:
        return np.zeros_like(y) if abs(y.mean()) < 1e-6 else y

    error = equivariance_error(thresholded_near_zero_mean, RANDOM)
    assert error.shift > 1e-3
    assert error.worst["shift"].offset == pytest.approx(-RANDOM.mean())


def test_mixed_failures_show_in_norm_only() -> None:
    def only_wrong_together(y: Any) -> Any:
        moved = abs(y.mean() - RANDOM.mean() * y.std() / RANDOM.std()) > 1e-9
        scaled = abs(y.std() / RANDOM.std() - 1) > 1e-9
        return y + y.std() if moved and scaled else y

    error = equivariance_error(only_wrong_together, RANDOM)
    assert max(error.scale, error.shift) < 1e-9 < 0.5 < error.norm


def test_the_image_is_handed_over_in_its_own_kind() -> None:
    seen: list[Any] = []

    def record(y: Any) -> Any:
        seen.append(y)
        return y

    equivariance_error(record, torch.rand(3, 4, dtype=torch.float32))
    assert all(isinstance(y, torch.Tensor) and y.dtype == torch.float32 for y in seen)
    seen.clear()
    equivariance_error(record, np.arange(12).reshape(3, 4))
    assert all(isinstance(y, np.ndarray) and y.dtype == np.float64 for y in seen)


@pytest.mark.parametrize("image", [np.zeros((0, 3)), np.array([[np.nan, 1.0]])])
def test_an_unusable_image_is_refused(image: Any) -> None:
    with pytest.raises(InputError, match="finite image"):
        equivariance_error(lambda y: y, image)


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises(UsageError, match="'gain' is unknown"):
        assert_equivariant(lambda y: y, RANDOM, "gain")
