from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.errors import InputError
from normeq.noise import KINDS, draw, estimate_sigma


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(
    gain=st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3),
    offset=st.floats(-1e3, 1e3),
    side=st.integers(3, 100),
)
def test_estimates_scale_and_do_not_shift(gain, offset, side):
    image = rng(side).standard_normal((side, side + 3))
    expected = abs(gain) * estimate_sigma(image)
    assert estimate_sigma(gain * image + offset) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sigma", [10.0, 25.0, 50.0])
def test_estimates_are_right_on_a_photograph(kind, sigma):
    from skimage import data

    camera = data.camera().astype(np.float64)
    noisy = camera + draw(kind, camera.shape, sigma, rng())
    assert estimate_sigma(noisy) == pytest.approx(sigma, rel=0.06)


def test_estimates_ignore_constant_areas():
    noisy = 5.0 * rng().standard_normal((256, 256))
    whole = estimate_sigma(noisy)
    noisy[:, :180] = 0.0
    assert estimate_sigma(noisy) == pytest.approx(whole, rel=0.05)
    assert whole == pytest.approx(5.0, rel=0.05)


def test_a_constant_image_has_no_noise_whatever_its_size():
    assert estimate_sigma(np.full((300, 300), 1e6)) == 0.0
    assert estimate_sigma(np.zeros((3, 3))) == 0.0


def test_every_plane_of_a_stack_has_its_own_estimate():
    levels = np.array([[1.0, 5.0], [10.0, 40.0]])
    noise = np.random.default_rng(0).standard_normal((2, 2, 128, 128))
    estimates = estimate_sigma(noise * levels[..., None, None])
    np.testing.assert_allclose(estimates, levels, rtol=0.1)


def test_estimates_need_a_finite_plane():
    with pytest.raises(InputError, match=r"not on shape \(2, 9\)"):
        estimate_sigma(np.zeros((2, 9)))
    with pytest.raises(InputError, match=r"not on shape \(9,\)"):
        estimate_sigma(np.zeros(9))
    with pytest.raises(InputError, match="NaN"):
        estimate_sigma(np.full((9, 9), np.nan))
