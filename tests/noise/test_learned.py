from __future__ import annotations

import numpy as np
import pytest
import torch
from skimage import data
from torch import Tensor, nn

import normeq
from normeq.errors import InputError, UsageError
from normeq.noise import (
    GeneralizedAnscombe,
    Scaling,
    estimate_noise,
    poisson_gaussian,
    stabilisation_of,
)
from normeq.noise.learned import LearnedStabilisation, learn_stabilisation

CAMERA = data.camera()[256:384, :128].astype(np.float64)


def noisy_camera() -> np.ndarray:
    return poisson_gaussian(CAMERA, 8.0, 3.0, np.random.default_rng(0))


class Smoothing(nn.Module):
    """A fast denoiser: means over similar neighbours."""

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-2:]
        padded = nn.functional.pad(x, (2, 2, 2, 2), mode="reflect")
        around = nn.functional.unfold(padded, 5).reshape(len(x), 25, *size)
        weights = torch.softmax(-((around - x) ** 2) / 8.0, 1)
        return (weights * around).sum(1, keepdim=True)


def denoised(transform, image: np.ndarray, denoise: nn.Module) -> np.ndarray:
    stable = torch.from_numpy(transform.forward(image)).float()[None, None]
    with torch.no_grad():
        return transform.inverse(denoise(stable)[0, 0].double().numpy())


def error(image: np.ndarray) -> float:
    return float(np.sqrt(np.mean((image - CAMERA) ** 2)))


def test_the_transform_is_learned_from_nothing():
    noisy = noisy_camera()
    transform = learn_stabilisation(noisy, Smoothing(), steps=120)
    without = error(denoised(Scaling(float((noisy - CAMERA).std())), noisy, Smoothing()))
    assert error(denoised(transform, noisy, Smoothing())) < 0.96 * without


def test_the_transform_is_the_same_every_time_and_in_all_units():
    noisy = noisy_camera()
    first = learn_stabilisation(noisy, Smoothing(), steps=20)
    again = learn_stabilisation(noisy, Smoothing(), steps=20)
    np.testing.assert_array_equal(first.stable, again.stable)
    other = learn_stabilisation(37.0 * noisy - 1e4, Smoothing(), steps=20)
    np.testing.assert_allclose(other.values, 37.0 * first.values - 1e4, rtol=1e-9)
    np.testing.assert_array_equal(other.stable, first.stable)
    stable = np.linspace(-1.0, 1.0, 50)
    np.testing.assert_allclose(other.inverse(stable), 37.0 * first.inverse(stable) - 1e4, rtol=1e-9)


def test_the_start_is_where_learning_begins():
    start = GeneralizedAnscombe(8.0, 9.0, 3.0)
    transform = learn_stabilisation(noisy_camera(), Smoothing(), start=start, steps=1)
    levels = np.linspace(10.0, 60.0, 20)
    np.testing.assert_allclose(transform.forward(levels), start.forward(levels), rtol=0.08)


def test_the_denoiser_does_not_change():
    net = nn.Conv2d(1, 1, 3, padding=1)
    before = net.weight.clone()
    learn_stabilisation(noisy_camera(), net, steps=2)
    assert torch.equal(net.weight, before)
    assert net.weight.grad is None


def test_forward_and_inverse_undo_each_other_beyond_the_knots_too():
    transform = LearnedStabilisation(np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0, 2.0]))
    values = np.linspace(-5.0, 9.0, 29)
    np.testing.assert_allclose(transform.inverse(transform.forward(values)), values, atol=1e-12)
    assert (np.diff(transform.forward(values)) > 0).all()


def test_missing_pixels_are_left_out():
    noisy = noisy_camera()
    noisy[40:60, 40:60] = np.nan
    transform = learn_stabilisation(noisy, Smoothing(), steps=3)
    assert np.isfinite(transform.stable).all()


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(InputError, match="nothing to stabilise"):
        learn_stabilisation(np.zeros((64, 64)), Smoothing())
    with pytest.raises(UsageError, match="steps is 0"):
        learn_stabilisation(noisy_camera(), Smoothing(), steps=0)


@pytest.mark.slow
def test_a_network_gains_what_the_formula_gains():
    noisy, net = noisy_camera(), normeq.load("default").eval()
    start = stabilisation_of(estimate_noise(noisy))
    learned = learn_stabilisation(noisy, net, start=start)
    by_formula = error(denoised(GeneralizedAnscombe(8.0, 9.0, 3.0), noisy, net))
    assert error(denoised(learned, noisy, net)) < 1.1 * by_formula
