from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from skimage import data

from normeq.errors import InputError
from normeq.noise import (
    KINDS,
    NoiseModel,
    draw,
    estimate_noise,
    estimate_noise_of,
    estimate_sigma,
    poisson_gaussian,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def camera() -> np.ndarray:
    return data.camera().astype(np.float64)


def blurred_noise(shape: tuple[int, ...], width: float, sigma: float, seed: int = 3) -> np.ndarray:
    noise = ndimage.gaussian_filter(rng(seed).standard_normal(shape), width, mode="wrap")
    return sigma * noise / noise.std()


def assert_close(found: NoiseModel, expected: NoiseModel, rtol: float) -> None:
    """Compare variances over the levels of the image, and the correlation."""
    levels = np.linspace(expected.darkest, expected.brightest, 5)
    np.testing.assert_allclose(found.variance(levels), expected.variance(levels), rtol=rtol)
    assert found.gain == pytest.approx(expected.gain, rel=rtol, abs=1e-12)
    np.testing.assert_allclose(
        found.correlation.autocorrelation, expected.correlation.autocorrelation, atol=rtol
    )
    np.testing.assert_allclose(found.covariance[0], expected.covariance[0], rtol=1e-3, atol=1e-30)


SCENE = poisson_gaussian(data.camera()[128:320, 100:300].astype(float), 2.0, 3.0, rng())


@pytest.mark.parametrize("rounded", [False, True])
@settings(max_examples=15)
@given(scale=st.floats(1e-3, 1e3), offset=st.floats(-1e4, 1e4))
def test_models_follow_the_units_of_the_image(rounded, scale, offset):
    image = np.rint(SCENE) if rounded else SCENE
    expected = estimate_noise(image).rescaled(scale, offset)
    assert expected.gain > 0
    # What rounding at this offset leaves of the image's digits.
    rtol = 1e-7 + 1e-9 * abs(offset) / scale
    assert_close(estimate_noise(scale * image + offset), expected, rtol)


@settings(max_examples=15)
@given(scale=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3), side=st.integers(3, 100))
def test_levels_scale_and_do_not_shift(scale, offset, side):
    image = rng(side).standard_normal((side, side + 3))
    expected = scale * estimate_sigma(image)
    assert estimate_sigma(scale * image + offset) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sigma", [10.0, 25.0, 50.0])
def test_levels_are_right_on_a_photograph(kind, sigma):
    noisy = camera() + draw(kind, camera().shape, sigma, rng())
    # Of noise with heavy tails, quiet areas hold less than their share.
    assert estimate_sigma(noisy) == pytest.approx(sigma, rel=0.1 if kind == "laplace" else 0.06)


@pytest.mark.parametrize(("gain", "read_noise"), [(0.5, 2.0), (4.0, 5.0), (20.0, 1.0)])
def test_noise_that_grows_with_the_signal_is_recognised(gain, read_noise):
    model = estimate_noise(poisson_gaussian(camera(), gain, read_noise, rng()) + 100.0)
    levels = np.array([40.0, 100.0, 200.0])
    truth = np.sqrt(gain * levels + read_noise**2)
    np.testing.assert_allclose(model.sigma(levels + 100.0), truth, rtol=0.1)
    assert model.gain == pytest.approx(gain, rel=0.15)
    assert 0 < model.gain_error < 0.2 * gain
    assert model.correlation.is_white


def test_noise_of_one_level_has_no_gain():
    model = estimate_noise(camera() + draw("gaussian", camera().shape, 15.0, rng()))
    assert model.gain == 0
    assert model.mean_sigma == pytest.approx(15.0, rel=0.05)
    assert model.correlation.is_white


def test_the_kind_of_noise_can_be_prescribed():
    noisy = poisson_gaussian(camera(), 4.0, 5.0, rng())
    assert estimate_noise(noisy, signal_dependent=False).gain == 0
    flat = draw("gaussian", (256, 256), 5.0, rng(1))
    free = [estimate_noise(flat * sign, signal_dependent=True).gain for sign in (1, -1)]
    assert max(free) > 0  # noise fits some slope, which is not significant
    assert estimate_noise(flat).gain == 0


@pytest.mark.parametrize("width", [0.6, 0.9, 1.3])
def test_correlated_noise_has_its_level_and_its_length(width):
    model = estimate_noise(camera() + blurred_noise(camera().shape, width, 15.0))
    noise = blurred_noise((512, 512), width, 1.0)
    for lag in (1, 2, 3):
        across = np.mean(noise[:, lag:] * noise[:, :-lag])
        assert model.correlation.autocorrelation[0][lag] == pytest.approx(across, abs=0.08)
        assert model.correlation.autocorrelation[lag][0] == pytest.approx(across, abs=0.08)
    assert model.mean_sigma == pytest.approx(15.0, rel=0.12)
    assert not model.correlation.is_white


@pytest.mark.parametrize(("width", "error"), [(0.8, 0.05), (1.2, 0.1)])
def test_strongly_correlated_noise_on_a_flat_image_is_not_underestimated(width, error):
    # Single images scatter by 2 and 4 %; a bias shows in the mean of several.
    found = [
        estimate_noise(blurred_noise((512, 512), width, 1.0, seed)).mean_sigma for seed in range(8)
    ]
    np.testing.assert_allclose(found, 1.0, atol=error)
    assert np.mean(found) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("sigma", [8.0, 12.0])
@pytest.mark.parametrize(("photograph", "error"), [(data.coins, 0.17), (data.brick, 0.06)])
def test_sharp_texture_does_not_pass_for_strongly_correlated_noise(photograph, error, sigma):
    """At high frequencies, the grain of a photograph outlasts such noise."""
    clean = photograph().astype(np.float64)
    found = [
        estimate_noise(clean + blurred_noise(clean.shape, 1.2, sigma, seed)).mean_sigma
        for seed in range(4)
    ]
    assert np.mean(found) == pytest.approx(sigma, rel=error)


def test_sharp_texture_beside_smooth_areas_does_not_hide_correlated_noise():
    """Blocks that are quiet at low frequencies alone would lend it the spectrum of white noise."""
    shape = (384, 384)
    rough = ndimage.gaussian_filter(rng(4).standard_normal(shape), 6.0)
    rough = np.clip(rough / rough.std(), 0.0, 1.0)
    scene = 50 + 100 * rough + 20 * rough * rng(5).standard_normal(shape)
    model = estimate_noise(scene + blurred_noise(shape, 1.2, 5.0))
    assert model.correlation.autocorrelation[0][1] == pytest.approx(0.84, abs=0.03)
    assert model.sigma(50.0) == pytest.approx(5.0, rel=0.15)


@pytest.mark.parametrize("sigma", [12.0, 20.0])
def test_a_cautious_estimate_tells_texture_from_correlation(sigma):
    textured = data.gravel().astype(np.float64)
    white = sigma * rng().standard_normal(textured.shape)
    assert estimate_noise(textured + white, cautious=True).correlation.is_white
    noise = blurred_noise(camera().shape, 0.5, sigma)
    found = estimate_noise(camera() + noise, cautious=True).correlation
    assert found.rows > 0.15
    assert found.columns > 0.15


def test_correlation_has_a_direction():
    noise = ndimage.uniform_filter1d(rng().standard_normal((400, 400)), 2, axis=1)
    correlation = estimate_noise(noise).correlation
    assert correlation.columns == pytest.approx(0.5, abs=0.05)
    assert correlation.rows == 0


def test_hot_and_dead_pixels_do_not_count():
    noisy = camera() + draw("gaussian", camera().shape, 10.0, rng())
    whole = estimate_sigma(noisy)
    for value in (60000.0, -3000.0):
        noisy[rng(1).random(noisy.shape) < 0.005] = value
    assert estimate_sigma(noisy) == pytest.approx(whole, rel=0.04)


def test_values_cut_off_at_black_and_white_do_not_count():
    ramp = np.linspace(-60.0, 320.0, 512)[None] + np.zeros((512, 1))
    noisy = ramp + draw("gaussian", ramp.shape, 15.0, rng())
    assert estimate_sigma(np.clip(noisy, 0, 255)) == pytest.approx(15.0, rel=0.04)


def test_ends_of_the_dtype_mean_nothing():
    # The same picture, once at the limits of uint8 and once far from them.
    noisy = np.clip(camera() / 2 + 60 + draw("gaussian", camera().shape, 8.0, rng()), 0, 255)
    stored = np.rint(noisy).astype(np.uint8)
    assert estimate_sigma(stored) == pytest.approx(estimate_sigma(stored + 1000.0), rel=1e-9)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_rounding_is_part_of_the_noise(sigma):
    smooth = 100 + 60 * np.sin(np.add.outer(np.arange(400), np.arange(400)) / 60)
    rounded = np.rint(smooth + draw("gaussian", smooth.shape, sigma, rng()))
    truth = np.sqrt(sigma**2 + 1 / 12)
    assert estimate_sigma(rounded) == pytest.approx(truth, rel=0.08)


def test_an_image_without_noise_has_that_of_its_rounding():
    smooth = 100 + 60 * np.sin(np.add.outer(np.arange(400), np.arange(400)) / 60)
    assert estimate_sigma(10 * np.rint(smooth)) == pytest.approx(10 / np.sqrt(12), rel=0.3)


def test_missing_pixels_do_not_count():
    noisy = camera() + draw("gaussian", camera().shape, 12.0, rng())
    whole = estimate_noise(noisy)
    holes = rng(1).random(noisy.shape) < 0.01
    holes[:100, :200] = True
    expected = estimate_noise(np.where(holes, np.nan, noisy))
    assert expected.mean_sigma == pytest.approx(whole.mean_sigma, rel=0.03)
    assert estimate_noise(np.ma.array(noisy, mask=holes)) == expected
    assert estimate_noise(np.where(holes, np.inf, noisy)) == expected
    assert estimate_sigma(np.ma.array(noisy, mask=holes)) == expected.mean_sigma


def test_constant_areas_do_not_count():
    noisy = 5.0 * rng().standard_normal((256, 256))
    whole = estimate_sigma(noisy)
    noisy[:, :180] = 0.0
    assert estimate_sigma(noisy) == pytest.approx(whole, rel=0.05)
    assert whole == pytest.approx(5.0, rel=0.05)


def test_photons_can_be_so_few_that_most_pixels_are_empty():
    ramp = np.add.outer(np.linspace(0, 0.3, 400), np.linspace(0, 0.3, 400))
    model = estimate_noise(poisson_gaussian(ramp, 1.0, 0.0, rng()))
    assert model.gain == pytest.approx(1.0, rel=0.1)


def test_a_constant_image_has_no_noise_whatever_its_size():
    assert estimate_sigma(np.full((300, 300), 1e6)) == 0.0
    assert estimate_sigma(np.zeros((3, 3))) == 0.0
    assert estimate_noise(np.full((4, 20, 20), 7)).darkest == 7.0


def test_a_stack_has_one_model_and_a_level_for_each_plane():
    levels = np.array([[1.0, 5.0], [10.0, 40.0]])
    noise = rng().standard_normal((2, 2, 128, 128))
    np.testing.assert_allclose(estimate_sigma(noise * levels[..., None, None]), levels, rtol=0.06)
    assert estimate_noise(3.0 * noise).mean_sigma == pytest.approx(3.0, rel=0.03)


def test_large_images_are_read_in_few_parts_and_only_once():
    shape = (40, 2000, 3000)
    seen = []

    def read(frame, rows, columns):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        seen.append((frame, rows.start, columns.start))
        noise = rng(hash((frame, rows.start, columns.start)) % 2**32)
        return (50 + 4 * noise.standard_normal((height, width))).astype(np.uint16)

    model = estimate_noise_of(read, shape)
    assert model.mean_sigma == pytest.approx(np.sqrt(16 + 1 / 12), rel=0.03)
    assert len(seen) == len(set(seen)) == 16
    assert len({frame for frame, _, _ in seen}) > 8


def test_arrays_that_are_read_lazily_give_the_same_model():
    stack = poisson_gaussian(np.stack([camera()] * 5), 2.0, 3.0, rng())

    class Lazy:
        shape = stack.shape

        def __getitem__(self, index):
            assert index[0] in range(5)
            return stack[index]

    assert estimate_noise(Lazy()) == estimate_noise(stack)


@pytest.mark.parametrize("shape", [(9,), (2, 9), (0, 9, 9)])
def test_planes_need_a_few_pixels(shape):
    with pytest.raises(InputError, match="at least 3 x 3"):
        estimate_noise(np.zeros(shape))


def test_pixels_need_values():
    with pytest.raises(InputError, match="no pixel of the image has a value"):
        estimate_sigma(np.full((9, 9), np.nan))
    with pytest.raises(InputError, match="too large"):
        estimate_noise(np.array([[1e308, -1e308, 1e308]] * 3))


def test_texture_in_bright_structures_is_not_noise_that_grows_with_the_signal():
    """Beads leave no bright block without structure, but their blocks are uneven."""
    rng = np.random.default_rng(3)
    drawn = np.zeros((384, 384))
    drawn[tuple(rng.integers(0, 384, (2, 150)))] = rng.uniform(0.2, 1.0, 150)
    beads = ndimage.gaussian_filter(drawn, 2.0)
    noise = ndimage.gaussian_filter(rng.standard_normal(beads.shape), 1.0, mode="wrap")
    model = estimate_noise(200 * beads / beads.max() + 20 + 4 * noise / noise.std())
    assert model.gain == 0
    assert model.sigma(100.0) == pytest.approx(4.0, rel=0.1)
