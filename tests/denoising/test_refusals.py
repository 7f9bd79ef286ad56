"""What `normeq.denoise` refuses, each with a sentence that names the value and the way out."""

from typing import Any

import numpy as np
import pytest
from helpers.small_networks import tiny

import normeq
from normeq.errors import InputError, UsageError

NET = tiny("unet", "norm-equiv-residual")
NET_SIGMA = tiny("unet", "norm-equiv", blind=False)
NOISY = 100 + 20 * np.random.default_rng(0).standard_normal((3, 21, 26))


@pytest.mark.parametrize(
    ("image", "options", "error", "sentence"),
    [
        (np.float64(3), {}, InputError, "two axes"),
        (np.zeros(5), {}, InputError, "two axes"),
        (np.zeros((0, 5)), {}, InputError, "empty"),
        (np.zeros((5, 5), bool), {}, InputError, "booleans"),
        (np.zeros((5, 5), complex), {}, InputError, "complex"),
        (np.array([["a", "b"]], object), {}, InputError, "object"),
        (np.ma.masked_array(np.zeros((5, 5))), {}, InputError, "masked"),
        (np.array([[1, np.nan], [np.inf, 2]]), {}, InputError, r"2 of the 4 pixels.*nan='keep'"),
        (np.full((4, 4), 1e200) * np.eye(4), {}, InputError, "too large"),
        (np.zeros((20, 20, 3)), {}, InputError, "channel_axis=-1"),
        (np.zeros((5, 5)), {"sigma": 1.0}, UsageError, "is blind"),
        (np.zeros((5, 5)), {"nan": "fill"}, UsageError, "'raise' or 'keep'"),
        (np.zeros((5, 5)), {"tile": 0}, UsageError, "tile is 0"),
        (np.zeros((5, 5)), {"device": "abacus"}, UsageError, "abacus"),
        (np.zeros((5, 5)), {"axes": "YXC"}, UsageError, "name 3 axes"),
        (np.zeros((5, 5)), {"channel_axis": 0}, UsageError, "channel_axis 0"),
        (np.zeros((5, 5)), {"value_range": (1, 0)}, UsageError, "low to high"),
        (np.zeros((5, 5)), {"output_dtype": bool}, InputError, "booleans"),
        (np.zeros((3, 5, 5)), {"axes": "ZYX", "channel_axis": 0}, UsageError, "not both"),
    ],
)
def test_bad_input_gets_a_sentence(
    image: Any, options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        normeq.denoise(image, model=NET, **options)


@pytest.mark.parametrize("sigma", [-1.0, np.nan, [1.0, 2.0]])
def test_impossible_noise_levels_are_refused(sigma: Any) -> None:
    with pytest.raises(UsageError, match="sigma"):
        normeq.denoise(NOISY, sigma, model=NET_SIGMA)
    with pytest.raises(UsageError, match="needs the noise level"):
        normeq.denoise(NOISY[0], model=NET_SIGMA, noise="gaussian")


def test_functions_say_by_their_parameters_whether_they_take_the_level() -> None:
    with pytest.raises(UsageError, match="needs the noise level"):
        normeq.denoise(NOISY[0], model=lambda image, sigma: image)
    with pytest.raises(UsageError, match="is blind"):
        normeq.denoise(NOISY[0], 2.0, model=lambda image: image)
    for sigma in (None, 2.0):
        normeq.denoise(NOISY[0], sigma, model=lambda image, sigma=1.0: image)


def test_a_colour_network_is_refused() -> None:
    with pytest.raises(UsageError, match="3 channels"):
        normeq.denoise(NOISY[0], model=tiny("fdncnn", channels=3))
