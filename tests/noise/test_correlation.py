from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from normeq.errors import UsageError
from normeq.noise import autocorrelation_of_kernel, correlation_length


def test_the_length_of_white_noise_is_zero():
    assert correlation_length([1.0]) == 0.0
    assert correlation_length([1.0, 0.04, 0.9]) == 0.0
    assert correlation_length([1.0, -0.5, 0.9]) == 0.0


def test_the_length_sums_what_lies_before_the_first_independent_lag():
    assert correlation_length([1.0, 0.6, 0.2, 0.05, 0.049, 0.7]) == pytest.approx(0.85)
    assert correlation_length([1.0, 0.5, 0.5]) == 1.0


@pytest.mark.parametrize("wrong", [[], [0.9, 0.5], [[1.0, 0.5]], 1.0])
def test_what_does_not_start_with_one_is_refused(wrong):
    with pytest.raises(UsageError, match="starts with 1"):
        correlation_length(wrong)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_autocorrelation_of_a_kernel_is_that_of_the_noise_it_makes(axis):
    kernel = np.random.default_rng(1).random((3, 4))
    noise = ndimage.convolve(np.random.default_rng(0).standard_normal((1500, 1500)), kernel)
    noise = np.moveaxis(noise - noise.mean(), axis, 0)
    measured = [np.mean(noise[: -lag or None] * noise[lag:]) for lag in range(kernel.shape[axis])]
    expected = autocorrelation_of_kernel(kernel, axis)
    np.testing.assert_allclose(measured / measured[0], expected, atol=5e-3)
