"""Every kind of training noise has the level and the lengths that the network is told."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data, transform

from normeq.noise import correlation_length
from normeq.training.noise_mixture import noisy_sample
from normeq.training.recipe import Mixture
from normeq.training.samples import Sample

CLEAN = transform.resize(data.camera(), (256, 256)).astype(np.float32)[None]
LEVEL = 0.1


def sample(seed: int = 0, clean: np.ndarray = CLEAN, **shares: float) -> Sample:
    rng = np.random.default_rng(seed)
    return noisy_sample(clean, LEVEL, "gaussian", Mixture(**shares), rng)


def length_of(noise: np.ndarray, axis: int) -> float:
    along = np.moveaxis(noise, axis, 0)
    rho = [1.0, *((along[:-lag] * along[lag:]).mean() / (along**2).mean() for lag in range(1, 12))]
    return correlation_length(rho)


def told_length(given: Sample, axis: int) -> float:
    return float((given.correlation[axis - 1] / given.sigma[0]).mean() - 1)


def test_an_empty_mixture_is_white_noise_of_the_told_level():
    given = sample()
    assert (given.noisy - given.target).std() == pytest.approx(LEVEL, rel=0.02)
    assert np.all(given.sigma == np.float32(LEVEL))
    assert np.array_equal(given.correlation, np.repeat(given.sigma, 2, 0))


@pytest.mark.parametrize("seed", range(4))
def test_coloured_noise_has_its_level_and_its_lengths(seed):
    given = sample(seed, colored=1.0)
    noise = given.noisy - given.target
    assert noise.std() == pytest.approx(LEVEL, rel=0.05)
    for axis in (1, 2):
        assert told_length(given, axis) == pytest.approx(length_of(noise, axis), abs=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_the_far_reaching_part_of_noise_is_not_told(seed):
    near, given = sample(seed, colored=1.0), sample(seed, colored=1.0, far=1.0)
    assert np.array_equal(given.target, near.target)
    assert np.array_equal(given.sigma, np.full_like(given.sigma, LEVEL))
    assert LEVEL < (given.noisy - given.target).std() < 1.3 * LEVEL


def test_colours_span_the_widths_and_are_anisotropic():
    lengths = np.array(
        [[told_length(sample(seed, colored=1.0), axis) for axis in (1, 2)] for seed in range(40)]
    )
    assert lengths.min() < 0.3
    assert lengths.max() > 1.8
    same = np.isclose(lengths[:, 0], lengths[:, 1])
    assert 8 < same.sum() < 32


@pytest.mark.parametrize("seed", range(3))
def test_a_smooth_level_is_the_one_that_is_told(seed):
    given = sample(seed, smooth=1.0)
    scaled = (given.noisy - given.target) / given.sigma
    assert scaled.std() == pytest.approx(1, rel=0.02)
    assert np.sqrt((given.sigma**2).mean()) == pytest.approx(LEVEL, rel=1e-4)
    assert given.sigma.max() / given.sigma.min() > 1.2
    assert np.abs(np.diff(given.sigma)).max() < 0.05 * given.sigma.max()


@pytest.mark.parametrize("colored", [0.0, 1.0])
def test_the_level_grows_with_the_signal(colored):
    given = sample(1, signal=1.0, colored=colored)
    noise = given.noisy - given.target
    assert noise.std() == pytest.approx(LEVEL, rel=0.05)
    dark, bright = given.target < 0.15, given.target > 0.6
    assert noise[bright].std() > 1.25 * noise[dark].std()
    for part in (dark, bright):
        told = np.sqrt((given.sigma[part] ** 2).mean())
        assert told == pytest.approx(noise[part].std(), rel=0.25)


def test_the_map_of_the_level_does_not_give_the_clean_image_away():
    given = sample(1, signal=1.0)
    variance = given.sigma**2
    gain, base = np.polyfit(variance.ravel(), given.target.ravel(), 1)
    guessed = gain * variance + base
    assert (guessed - given.target).std() > 0.02


@pytest.mark.parametrize("seed", range(6))
def test_camera_noise_has_the_level_and_lengths_that_are_told(seed):
    given = sample(seed, camera=1.0)
    noise = given.noisy - given.target
    assert np.sqrt((noise**2).mean()) == pytest.approx(given.level, rel=1e-3)
    assert np.allclose(given.sigma, given.level)
    for axis in (1, 2):
        assert told_length(given, axis) == pytest.approx(length_of(noise, axis), abs=0.05)


def test_cameras_correlate_and_compress():
    given = [sample(seed, camera=1.0) for seed in range(12)]
    in_8_bits = [bool(np.allclose(each.noisy * 255 % 1 % 0.999, 0, atol=2e-3)) for each in given]
    assert 0 < sum(in_8_bits) < len(given)
    assert max(told_length(each, 1) for each in given) > 0.5


@pytest.mark.parametrize("seed", range(4))
def test_stabilised_noise_is_unbiased_and_has_the_told_level_where_there_are_photons(seed):
    given = sample(seed, stabilised=1.0)
    noise = given.noisy - given.target
    bright = given.target > np.median(given.target)
    assert noise[bright].std() == pytest.approx(LEVEL, rel=0.05)
    assert abs(noise.mean()) < 0.02 * LEVEL
    assert np.all(given.sigma == np.float32(LEVEL))
    # The target is a rising function of the scene, which the unbiased inverse turns back into it.
    order = np.argsort(CLEAN, axis=None)
    assert np.all(np.diff(given.target.ravel()[order]) >= 0)


def test_a_dark_patch_is_not_stabilised():
    clean = np.zeros((1, 32, 32), np.float32)
    assert np.array_equal(sample(0, clean, stabilised=1.0).target, clean)


def test_not_told_is_zero_everywhere():
    given = sample(not_told=1.0)
    assert not given.sigma.any()
    assert not given.correlation.any()
    assert given.level == LEVEL


@pytest.mark.parametrize("seed", range(5))
def test_of_an_understated_level_the_rest_belongs_to_the_target(seed):
    given, exact = sample(seed, understated=1.0), sample(seed)
    share = float((given.sigma / exact.sigma).mean())
    assert 0.2 <= share <= 0.7
    noise = exact.noisy - exact.target
    np.testing.assert_allclose(given.target - exact.target, (1 - share**2) * noise, atol=1e-6)
    # What is left of noise n1 + n2 is the best guess of n2 that the sum allows.
    rng = np.random.default_rng(seed)
    first, second = share * rng.standard_normal(20000), rng.standard_normal(20000)
    second *= np.sqrt(1 - share**2)
    slope = np.polyfit(first + second, second, 1)[0]
    assert slope == pytest.approx(1 - share**2, abs=0.02)


def test_the_target_of_an_overstated_level_has_noise_of_that_level():
    given = [sample(seed, overstated=1.0) for seed in range(40)]
    factors = np.array([each.sigma.flat[0] / LEVEL for each in given])
    assert 1.4 <= factors.min() < 1.6
    assert 3.5 < factors.max() <= 4.0
    for each, factor in zip(given, factors, strict=True):
        assert each.overstated
        np.testing.assert_allclose(each.sigma, factor * LEVEL, rtol=1e-5)
        assert (each.noisy - CLEAN).std() == pytest.approx(LEVEL, rel=0.02)
        assert (each.target - CLEAN).std() == pytest.approx(factor * LEVEL, rel=0.02)
        added = each.target - each.noisy
        assert abs(np.corrcoef(added.ravel(), (each.noisy - CLEAN).ravel())[0, 1]) < 0.02
    assert not sample().overstated


def test_the_noise_that_is_added_has_the_colour_and_the_level_of_the_noise():
    given = sample(1, colored=1.0, smooth=1.0, overstated=1.0)
    added = given.target - given.noisy
    for axis in (1, 2):
        assert told_length(given, axis) == pytest.approx(length_of(added, axis), abs=0.15)
    strong = given.sigma > np.median(given.sigma)
    assert added[strong].std() > added[~strong].std()


def test_inexact_levels_stay_within_their_factor_and_the_target_is_clean():
    given = [sample(seed, inexact=1.0, inexact_factor=1.3) for seed in range(60)]
    ratios = np.array([each.sigma.mean() / LEVEL for each in given])
    assert 1 / 1.3 <= ratios.min() < 0.85
    assert 1.18 < ratios.max() <= 1.3
    assert all(np.array_equal(each.target, CLEAN) for each in given)
    assert all((each.correlation >= each.sigma).all() for each in given)


def test_colour_images_get_every_kind_of_noise():
    clean = transform.resize(data.astronaut(), (64, 64)).astype(np.float32).transpose(2, 0, 1)
    everything = {"colored": 0.3, "camera": 0.4, "smooth": 0.4, "signal": 0.4, "not_told": 0.3}
    for seed in range(20):
        given = sample(seed, clean, **everything)
        assert given.noisy.shape == given.target.shape == (3, 64, 64)
        assert given.sigma.shape == (3, 64, 64)
        assert given.correlation.shape == (2, 64, 64)
        assert np.isfinite(given.noisy).all()


def correlation_of_channels(noise: np.ndarray) -> np.ndarray:
    return np.corrcoef(noise.reshape(len(noise), -1))[np.triu_indices(len(noise), 1)]


@pytest.mark.parametrize("colored", [0.0, 1.0])
def test_channels_may_share_noise_and_differ_in_level(colored):
    clean = np.full((3, 128, 128), 0.5, np.float32)
    shares = {"mixed_channels": 1.0, "channel_levels": 1.0, "colored": colored}
    given = [sample(seed, clean, **shares) for seed in range(8)]
    noises = [each.noisy - each.target for each in given]
    assert max(np.abs(correlation_of_channels(noise)).max() for noise in noises) > 0.5
    for each, noise in zip(given, noises, strict=True):
        told = each.sigma.mean((1, 2))
        np.testing.assert_allclose(noise.std((1, 2)), told, rtol=0.15)
        assert np.sqrt((told**2).mean()) == pytest.approx(LEVEL, rel=1e-4)
    assert max(each.sigma.max() / each.sigma.min() for each in given) > 1.5
    apart = sample(0, clean).noisy - clean
    assert np.abs(correlation_of_channels(apart)).max() < 0.05


def test_every_array_has_single_precision():
    kinds = {"colored": 0.3, "camera": 0.4, "stabilised": 0.3, "smooth": 0.4, "signal": 0.4}
    everything = {**kinds, "understated": 0.5}
    for seed in range(20):
        given = sample(seed, CLEAN[:, :32, :32], **everything)
        arrays = (given.noisy, given.target, given.sigma, given.correlation)
        assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
