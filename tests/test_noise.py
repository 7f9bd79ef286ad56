from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.errors import InputError, UsageError
from normeq.noise import KINDS, draw, estimate_sigma, poisson_gaussian

# Fourth standardised moment and mean in units of sigma, which tell the families apart.
RAYLEIGH_MEAN = math.sqrt(math.pi / (4 - math.pi))
MOMENTS = {
    "gaussian": (3.0, 0.0),
    "uniform": (1.8, 0.0),
    "laplace": (6.0, 0.0),
    "rayleigh": (3.245, RAYLEIGH_MEAN),
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_the_standard_deviation_mean_and_shape_of_its_family(kind):
    noise = draw(kind, (1000, 1000), 7.0, rng()).astype(np.float64)
    kurtosis, mean = MOMENTS[kind]
    standardised = (noise - noise.mean()) / noise.std()
    assert noise.std() == pytest.approx(7.0, rel=5e-3)
    assert noise.mean() == pytest.approx(7.0 * mean, abs=0.03)
    assert np.mean(standardised**4) == pytest.approx(kurtosis, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_scales_with_sigma_and_repeats_with_the_seed(kind):
    once, again = draw(kind, (3, 4), 1.0, rng(5)), draw(kind, (3, 4), 8.0, rng(5))
    np.testing.assert_allclose(8 * once, again, rtol=1e-6)
    assert not np.array_equal(once, draw(kind, (3, 4), 1.0, rng(6)))
    assert once.dtype == np.float32


def test_an_unknown_family_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match="'salt' is not known; choose one of gaussian, uniform"):
        draw("salt", (2, 2), 1.0, rng())


def test_poisson_gaussian_noise_has_its_variance_at_every_level():
    for level in (0.0, 10.0, 500.0):
        noisy = poisson_gaussian(np.full((400, 400), level), 2.0, 3.0, rng())
        assert noisy.mean() == pytest.approx(level, abs=0.3)
        assert noisy.var() == pytest.approx(2.0 * level + 9.0, rel=0.02)


def test_poisson_gaussian_refuses_what_cannot_be_counts():
    with pytest.raises(InputError, match="holds -1"):
        poisson_gaussian([[-1.0]], 1.0, 0.0, rng())
    with pytest.raises(UsageError, match="gain is 0"):
        poisson_gaussian([[1.0]], 0.0, 0.0, rng())


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
