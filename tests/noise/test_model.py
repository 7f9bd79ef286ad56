from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.errors import UsageError
from normeq.noise import Correlation, NoiseModel, draw

MODEL = NoiseModel(
    gain=2.0,
    base=-150.0,
    darkest=100.0,
    mean=300.0,
    brightest=2000.0,
    correlation=Correlation(((1.0, 0.5, 0.2), (0.3, 0.1, 0.0), (0.0, 0.0, 0.0)), 0.01),
    covariance=(0.01, -0.5, 36.0),
)


@given(scale=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3), level=st.floats(100, 2000))
def test_other_units_follow_the_law(scale, offset, level):
    other = MODEL.rescaled(scale, offset)
    assert other.gain == pytest.approx(scale * MODEL.gain)
    assert other.base == pytest.approx(scale**2 * MODEL.base - scale * offset * MODEL.gain)
    there = scale * level + offset
    assert other.sigma(there) == pytest.approx(scale * MODEL.sigma(level), rel=1e-6)
    assert other.sigma_error(there) == pytest.approx(scale * MODEL.sigma_error(level), rel=1e-4)
    assert other.correlation == MODEL.correlation


@given(scale=st.floats(0.1, 10), offset=st.floats(-100, 100))
def test_units_there_and_back_are_the_same(scale, offset):
    back = MODEL.rescaled(scale, offset).rescaled(1 / scale, -offset / scale)
    for name in ("gain", "base", "darkest", "mean", "brightest", "covariance"):
        assert getattr(back, name) == pytest.approx(getattr(MODEL, name), rel=1e-6, abs=1e-6)


def test_the_variance_is_that_of_the_darkest_level_below_it():
    np.testing.assert_allclose(MODEL.variance([-1e6, 100.0, 200.0]), [50.0, 50.0, 250.0])
    assert MODEL.mean_sigma == math.sqrt(450.0)


def test_a_calibrated_camera_has_its_read_noise_in_the_dark():
    model = NoiseModel.from_camera(0.5, 3.0, 100.0, brightest=4000.0)
    assert model.base == 9.0 - 50.0
    assert model.sigma(100.0) == 3.0
    assert model.variance(300.0) == 109.0


def test_models_are_told_in_one_line():
    assert MODEL.describe() == (
        "signal-dependent, gain 2; sigma 7.1 at level 100 (darkest), 62 at 2000 (brightest); "
        "correlated (length 0.3 pixels down, 0.7 across)"
    )
    assert NoiseModel.uniform(12.345).describe() == "uniform, sigma 12.3; white"


def test_models_are_plain_data_for_json():
    assert NoiseModel.from_dict(json.loads(json.dumps(MODEL.to_dict()))) == MODEL
    with pytest.raises(UsageError, match="not a noise model"):
        NoiseModel.from_dict({"gain": 1.0})


def test_uncertainty_is_propagated_to_sigma():
    gains = 2.0 + 0.1 * draw("gaussian", (200000,), 1.0, np.random.default_rng(0))
    model = NoiseModel(
        gain=2.0, base=10.0, darkest=0.0, mean=0.0, brightest=9.0, covariance=(0.01, 0.0, 0.0)
    )
    measured = np.sqrt(gains * 9.0 + 10.0).std()
    assert model.sigma_error(9.0) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gain": -1.0}, "gain is -1"),
        ({"gain": math.nan}, "finite"),
        ({"darkest": 400.0}, "must increase"),
        ({"base": -201.0}, "variance would be -1"),
    ],
)
def test_what_cannot_be_noise_is_refused(change, words):
    good = {"gain": 2.0, "base": -150.0, "darkest": 100.0, "mean": 300.0, "brightest": 2000.0}
    with pytest.raises(UsageError, match=words):
        NoiseModel(**good | change)
    with pytest.raises(UsageError, match="must be positive"):
        MODEL.rescaled(-1.0)
    with pytest.raises(UsageError, match="must not be negative"):
        NoiseModel.uniform(-1.0)
    with pytest.raises(UsageError, match="must not be negative"):
        NoiseModel.from_camera(1.0, -1.0)
