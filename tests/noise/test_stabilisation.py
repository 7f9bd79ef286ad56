from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.errors import UsageError
from normeq.noise import (
    GeneralizedAnscombe,
    NoiseModel,
    Scaling,
    poisson_gaussian,
    stabilisation_of,
)

PHOTONS = (0.5, 1.0, 3.0, 10.0, 100.0)
CAMERA = NoiseModel.from_camera(3.0, 6.0, 100.0, brightest=5000.0)


@pytest.mark.parametrize("read_noise", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_the_inverse_is_unbiased(read_noise):
    rng = np.random.default_rng(0)
    transform = GeneralizedAnscombe(gain=1.0, base=read_noise**2, read_noise=read_noise)
    for photons in PHOTONS:
        noisy = poisson_gaussian(np.full(1_000_000, photons), 1.0, read_noise, rng)
        mean = float(transform.inverse(transform.forward(noisy).mean()))
        assert mean == pytest.approx(photons, rel=0.02)


@pytest.mark.parametrize("read_noise", [0.0, 1.0, 5.0])
def test_the_noise_has_variance_one(read_noise):
    rng = np.random.default_rng(0)
    transform = GeneralizedAnscombe(gain=1.0, base=read_noise**2, read_noise=read_noise)
    for photons in (5.0, 50.0, 5000.0):
        noisy = poisson_gaussian(np.full(300_000, photons), 1.0, read_noise, rng)
        assert transform.forward(noisy).std() == pytest.approx(1.0, rel=0.03)


def test_the_table_of_the_inverse_continues_as_the_series():
    # Means that a table, its series and its limit give meet: the inverse has no step anywhere.
    for read_noise in (0.0, 3.0, 19.9, 20.1, 1000.0):
        transform = GeneralizedAnscombe(gain=1.0, base=read_noise**2, read_noise=read_noise)
        dark = float(transform.forward(0.0))
        near = np.linspace(0, dark + 100, 20000, endpoint=False)
        stable = np.concatenate([near, np.geomspace(dark + 100, 1e5)])
        means = transform.inverse(stable)
        steps, slopes = np.diff(stable), np.diff(means)
        assert (slopes > 0).all()
        smooth = steps * (np.maximum(stable[1:], dark) / 2 + 1.5)
        assert (slopes <= smooth).all()


def test_the_inverse_inverts_the_mean():
    transform = GeneralizedAnscombe(gain=2.0, base=-7.0, read_noise=1.5)
    levels = np.linspace(5.0, 500.0, 100)
    np.testing.assert_allclose(transform.inverse(transform.mean(levels)), levels, rtol=1e-3)


def test_many_photons_follow_the_known_limit():
    transform = GeneralizedAnscombe(gain=1.0, base=0.0)
    stable = np.array([1e3, 1e6])
    np.testing.assert_allclose(transform.inverse(stable), (stable / 2) ** 2 - 1 / 8, rtol=1e-12)


@given(scale=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_units_change_nothing_but_the_result(scale, offset):
    noisy = poisson_gaussian(np.linspace(0, 500, 64), 3.0, 6.0, np.random.default_rng(1)) + 100
    here = stabilisation_of(CAMERA)
    there = stabilisation_of(CAMERA.rescaled(scale, offset))
    stable = here.forward(noisy)
    rtol = 1e-9 + 1e-12 * abs(offset) / scale
    np.testing.assert_allclose(there.forward(scale * noisy + offset), stable, rtol=rtol, atol=rtol)
    expected = scale * here.inverse(stable) + offset
    np.testing.assert_allclose(there.inverse(stable), expected, rtol=1e-7, atol=1e-6 * scale)


def test_what_is_darker_than_dark_is_not_cut_off():
    transform = stabilisation_of(CAMERA)
    dark = transform.forward(100.0)
    means = transform.inverse(np.array([dark - 1.0, dark - 0.5, dark]))
    assert (np.diff(means) > 0).all()
    assert means[0] < 100.0


def test_noise_of_one_level_is_scaled():
    transform = stabilisation_of(NoiseModel.uniform(4.0, level=7.0))
    assert transform == Scaling(4.0, 7.0)
    np.testing.assert_array_equal(transform.forward([7.0, 11.0]), [0.0, 1.0])
    np.testing.assert_array_equal(transform.inverse(transform.forward([8.0, 1.0])), [8.0, 1.0])


def test_inputs_are_not_changed():
    values = np.arange(5.0)
    transform = GeneralizedAnscombe(1.0, 1.0, 1.0)
    transform.forward(values)
    transform.inverse(values)
    np.testing.assert_array_equal(values, np.arange(5.0))


def test_parameters_that_mean_nothing_are_refused():
    with pytest.raises(UsageError, match="gain is 0"):
        GeneralizedAnscombe(0.0, 1.0)
    with pytest.raises(UsageError, match="read_noise is -1"):
        GeneralizedAnscombe(1.0, 1.0, -1.0)
    with pytest.raises(UsageError, match="sigma is 0"):
        Scaling(0.0)
