"""What every classical method promises: kinds of arrays kept, noise removed, equivariance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from skimage.data import camera

from normeq.classical import METHODS, Method, median_filter
from normeq.errors import InputError, UsageError

SIGMA = 25.0
# Smaller windows and fewer passes: the properties do not depend on them, the time does.
QUICK: dict[str, dict[str, Any]] = {
    "bm3d": {"radius": 6, "step": 4},
    "nlm": {"radius": 4},
    "nlridge": {"radius": 6, "step": 5, "counts": (10, 20)},
    "wnnm": {"radius": 6, "step": 4, "count": 30, "iterations": 3},
}
SHIFT_EQUIVARIANT = sorted(set(METHODS) - {"bm3d", "dct"})

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def call(method: Method, image: Any, sigma: float = SIGMA, **options: Any) -> Any:
    noise = {} if method.blind else {"sigma": sigma}
    return method(image, **noise, **{**QUICK.get(method.name, {}), **options})


@pytest.fixture(scope="module")
def noisy() -> np.ndarray:
    clean = camera()[100:196:2, 200:304:2].astype(np.float64)
    return clean + SIGMA * np.random.default_rng(1).standard_normal(clean.shape)


@every_method
def test_noise_falls(method: Method) -> None:
    smooth = np.add.outer(np.linspace(0, 100, 40), np.linspace(50, 90, 44))
    noisy = smooth + SIGMA * np.random.default_rng(0).standard_normal(smooth.shape)
    error = call(method, noisy) - smooth
    assert np.sqrt(np.mean(error**2)) < 0.5 * SIGMA


@every_method
def test_the_error_falls_on_a_photograph(method: Method) -> None:
    photograph = camera()[40:104, 200:264].astype(np.float64)
    noisy = photograph + SIGMA * np.random.default_rng(0).standard_normal(photograph.shape)
    error = call(method, noisy) - photograph
    assert np.sqrt(np.mean(error**2)) < 0.8 * SIGMA


@every_method
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_keep_their_kind_and_precision(
    method: Method, noisy: np.ndarray, dtype: type
) -> None:
    array = noisy[:20, :22].astype(dtype)
    from_array = call(method, array)
    from_tensor = call(method, torch.from_numpy(array))
    assert isinstance(from_array, np.ndarray)
    assert from_array.dtype == dtype
    assert isinstance(from_tensor, torch.Tensor)
    np.testing.assert_array_equal(from_tensor.numpy(), from_array)


@every_method
def test_integers_become_floats_in_their_own_units(method: Method, noisy: np.ndarray) -> None:
    integers = (40 * noisy[:20, :22]).round().astype(np.int32)
    result = call(method, integers, 40 * SIGMA)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, call(method, integers.astype(float), 40 * SIGMA))


@pytest.mark.parametrize("dtype", [bool, np.uint16, np.int64, np.float16, ">f4", ">f8", ">i2"])
def test_any_real_dtype_is_taken(noisy: np.ndarray, dtype: Any) -> None:
    array = noisy.astype(dtype)
    result = median_filter(array)
    expected = np.float32 if array.dtype.kind == "f" and array.itemsize < 8 else np.float64
    assert result.dtype == expected
    np.testing.assert_array_equal(result, median_filter(array.astype(expected)))


def test_views_and_read_only_arrays_are_taken(noisy: np.ndarray) -> None:
    view = noisy[::-1, ::2]
    view.flags.writeable = False
    np.testing.assert_array_equal(median_filter(view), median_filter(view.copy()))


@every_method
def test_leading_axes_are_looped(method: Method, noisy: np.ndarray) -> None:
    stack = np.stack([noisy[:20, :22], noisy[-20:, -22:]])[:, None]
    result = call(method, stack)
    assert result.shape == stack.shape
    np.testing.assert_array_equal(result[1, 0], call(method, stack[1, 0]))


@every_method
def test_the_input_is_left_alone(method: Method, noisy: np.ndarray) -> None:
    array = noisy[:20, :22].copy()
    call(method, array)
    np.testing.assert_array_equal(array, noisy[:20, :22])


@every_method
def test_scale_equivariant(method: Method, noisy: np.ndarray) -> None:
    result = call(method, noisy)
    for gain in (1e-3, 7.3):
        scaled = call(method, gain * noisy, gain * SIGMA)
        np.testing.assert_allclose(scaled / gain, result, atol=1e-6 * noisy.std())


@pytest.mark.parametrize("name", SHIFT_EQUIVARIANT)
def test_normalization_equivariant(name: str, noisy: np.ndarray) -> None:
    result = call(METHODS[name], noisy)
    for offset in (-noisy.mean(), 1e4):
        shifted = call(METHODS[name], 0.5 * noisy + offset, 0.5 * SIGMA)
        np.testing.assert_allclose((shifted - offset) / 0.5, result, atol=1e-6 * noisy.std())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bm3d", {}),
        ("dct", {}),
        ("nlridge", {"constraint": "linear"}),
        ("wnnm", {"subtract_mean": False}),
    ],
)
def test_thresholds_on_the_mean_make_offsets_matter(
    name: str, options: dict[str, Any], noisy: np.ndarray
) -> None:
    centre = noisy.mean()
    result = call(METHODS[name], noisy, **options)
    shifted = call(METHODS[name], noisy - centre, **options) + centre
    assert np.abs(shifted - result).max() > 0.01 * SIGMA


@every_method
def test_a_constant_image_comes_back(method: Method) -> None:
    constant = np.full((20, 22), 200.0)
    np.testing.assert_allclose(call(method, constant, 1.0), constant, rtol=1e-3)


@every_method
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma", [1e-6, 1e3])
def test_a_wrong_sigma_does_no_harm(method: Method, dtype: type, sigma: float) -> None:
    """Without noise, and with edges, the result stays near the image's values, or at zero."""
    steps = np.repeat(np.repeat([[250.0, 3.0], [90.0, 91.0]], 11, 0), 11, 1).astype(dtype)
    result = call(method, steps, sigma)
    assert result.min() > -5.0
    assert result.max() < 255.0


@pytest.mark.parametrize("constraint", ["affine", "linear"])
def test_nlridge_bounds_what_a_wrong_sigma_does(constraint: str) -> None:
    quiet = 100 + np.random.default_rng(0).standard_normal((30, 30))
    result = call(METHODS["nlridge"], quiet, 20.0, constraint=constraint)
    assert np.abs(result - quiet).max() < 5 * 20.0


@every_method
def test_pixels_that_cannot_be_denoised_are_refused(method: Method) -> None:
    holed = np.ones((20, 20))
    holed[3, 4] = np.nan
    with pytest.raises(InputError, match="NaN"):
        call(method, holed)
    with pytest.raises(InputError, match="two axes"):
        call(method, np.ones(20))


@pytest.mark.parametrize("name", ["bm3d", "dct", "nlridge", "wnnm"])
def test_images_smaller_than_a_patch_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="smaller patch"):
        call(METHODS[name], np.ones((5, 30)))


@pytest.mark.parametrize("name", sorted(name for name, m in METHODS.items() if not m.blind))
@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf])
def test_sigma_must_be_positive(name: str, sigma: float) -> None:
    with pytest.raises(UsageError, match="positive number"):
        METHODS[name](np.ones((20, 20)), sigma)


def test_blind_methods_take_no_sigma_and_the_others_need_one() -> None:
    with pytest.raises(UsageError, match="blind"):
        METHODS["median_filter"](np.ones((4, 4)), 1.0)
    with pytest.raises(UsageError, match="pass sigma"):
        METHODS["nlridge"](np.ones((20, 20)))


def test_nlridge_names_its_constraints() -> None:
    with pytest.raises(UsageError, match="'convex'"):
        METHODS["nlridge"](np.ones((20, 20)), 1.0, constraint="convex")


def test_bm3d_needs_a_power_of_two() -> None:
    with pytest.raises(UsageError, match="patch is 7"):
        METHODS["bm3d"](np.ones((20, 20)), 1.0, patch=7)
