from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from normeq.adaptation.risk import estimate_risk, mean_risk, probe
from normeq.errors import UsageError
from normeq.noise import Correlation, coloured

RAMP = np.add.outer(np.arange(192.0), np.arange(192.0))
SCENE = RAMP + 60 * np.sin(RAMP / 7)
BLURRED = Correlation(((1.0, 0.6, 0.1), (0.6, 0.36, 0.06), (0.1, 0.06, 0.01)))


def smooth(image):
    return ndimage.gaussian_filter(image, 1.0, mode="mirror")


@pytest.mark.parametrize("correlation", [Correlation(), BLURRED], ids=["white", "correlated"])
def test_the_estimate_is_unbiased(correlation):
    """Over draws of the noise, estimate and truth agree on average, and within their errors."""
    off = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        noisy = SCENE + 20 * coloured(rng.standard_normal(SCENE.shape), correlation)
        estimate = estimate_risk(smooth, noisy, 20.0, correlation=correlation, probes=2, seed=seed)
        off.append((estimate.mse - np.mean((smooth(noisy) - SCENE) ** 2)) / estimate.error)
    assert abs(np.mean(off)) < 3 / np.sqrt(len(off))
    assert np.std(off) < 1.6


def test_an_estimate_that_ignores_the_correlation_is_far_off():
    noisy = SCENE + 20 * coloured(np.random.default_rng(0).standard_normal(SCENE.shape), BLURRED)
    estimate = estimate_risk(smooth, noisy, 20.0)
    assert abs(estimate.mse - np.mean((smooth(noisy) - SCENE) ** 2)) > 5 * estimate.error


@given(gain=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
@settings(max_examples=10, deadline=None)
def test_the_estimate_follows_the_units(gain, offset):
    noisy = SCENE + np.random.default_rng(0).normal(0, 5, SCENE.shape)
    once, again = (
        estimate_risk(smooth, noisy, 5.0),
        estimate_risk(smooth, gain * noisy + offset, gain * 5.0),
    )
    assert again.mse == pytest.approx(gain**2 * once.mse, rel=1e-4)
    assert again.error == pytest.approx(gain**2 * once.error, rel=1e-4)
    assert again.rmse == pytest.approx(gain * once.rmse, rel=1e-4)


def test_a_level_for_each_pixel():
    rng = np.random.default_rng(0)
    sigma = np.where(RAMP < 192, 5.0, 40.0)
    noisy = SCENE + sigma * rng.standard_normal(SCENE.shape)
    estimate = estimate_risk(smooth, noisy, sigma, probes=2)
    assert abs(estimate.mse - np.mean((smooth(noisy) - SCENE) ** 2)) < 3 * estimate.error


def test_missing_pixels_do_not_count():
    terms = np.ones((40, 40))
    terms[3:20, 5:9] = np.nan
    assert mean_risk(terms).mse == 1.0
    assert mean_risk(terms).error == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(UsageError, match="no pixel has a value"):
        mean_risk(np.full((4, 4), np.nan))


def test_one_block_tells_no_error():
    assert mean_risk(np.ones((8, 8))).error == np.inf


def test_a_white_probe_has_two_values():
    assert set(np.unique(probe((32, 32), np.random.default_rng(0)))) == {-1.0, 1.0}


def test_no_probe_is_refused():
    with pytest.raises(UsageError, match="probes is 0"):
        estimate_risk(smooth, SCENE, 1.0, probes=0)
