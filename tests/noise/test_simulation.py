from __future__ import annotations

import math

import numpy as np
import pytest

from normeq.errors import InputError, UsageError
from normeq.noise import KINDS, Correlation, coloured, draw, poisson_gaussian

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
    assert kind in MOMENTS, f"give {kind} its moments in MOMENTS, in {__file__}"
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
    with pytest.raises(UsageError, match="'salt' is unknown; choose one of gaussian, uniform"):
        draw("salt", (2, 2), 1.0, rng())


def test_poisson_gaussian_noise_has_its_variance_at_every_level():
    for level in (0.0, 10.0, 500.0):
        noisy = poisson_gaussian(np.full((400, 400), level), 2.0, 3.0, rng())
        assert noisy.mean() == pytest.approx(level, abs=0.3)
        assert noisy.var() == pytest.approx(2.0 * level + 9.0, rel=0.02)


def test_poisson_gaussian_refuses_what_cannot_be_counts():
    with pytest.raises(InputError, match="contains -1"):
        poisson_gaussian([[-1.0]], 1.0, 0.0, rng())
    with pytest.raises(UsageError, match="gain is 0"):
        poisson_gaussian([[1.0]], 0.0, 0.0, rng())


@pytest.mark.parametrize("shape", [(256, 256), (2, 255, 127)])
def test_coloured_noise_has_the_correlation_it_is_given(shape):
    table = ((1.0, 0.5, 0.1), (0.25, 0.125, 0.025))
    noise = coloured(rng().standard_normal(shape), Correlation(table))
    assert noise.var() == pytest.approx(1.0, rel=0.05)
    for row, entries in enumerate(table):
        for column, rho in enumerate(entries):
            shifted = np.roll(noise, (row, column), (-2, -1))
            assert np.mean(noise * shifted) == pytest.approx(rho, abs=0.03)


def test_white_noise_is_not_coloured():
    white = rng().standard_normal((9, 9))
    assert np.array_equal(coloured(white, Correlation()), white)


def test_a_table_that_no_noise_has_still_gives_unit_variance():
    noise = coloured(rng().standard_normal((256, 256)), Correlation(((1.0, 0.9), (0.9, 0.9))))
    assert noise.var() == pytest.approx(1.0, rel=0.05)
