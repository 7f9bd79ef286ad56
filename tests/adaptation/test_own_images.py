"""`normeq.adapt`: better by its own account and in truth, the same in all units, never worse."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tifffile
import torch
from scipy import ndimage

import normeq
from normeq import models
from normeq.adaptation import tuning_job
from normeq.adaptation.tile_stream import TileStream
from normeq.adaptation.tuning_job import tune
from normeq.adaptation.tuning_options import TuningOptions
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.errors import InputError, UsageError
from normeq.images.array import ArraySource
from normeq.noise import Correlation, NoiseModel, coloured, poisson_gaussian


def scene(shape=(144, 160), seed=0):
    smooth = ndimage.gaussian_filter(np.random.default_rng(seed).normal(0, 1, shape[-2:]), 5)
    return 100 + 40 * smooth / smooth.std()


SCENE = scene()
NOISE = NoiseModel.uniform(8.0)
NOISY = SCENE + np.random.default_rng(1).normal(0, 8, SCENE.shape)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return normeq.create("unet", "norm-equiv-residual", blind=True, widths=(6, 6), blocks=1)


@pytest.fixture
def told_net():
    torch.manual_seed(0)
    return normeq.create(
        "unet",
        "norm-equiv-residual",
        takes_sigma="optional",
        takes_correlation=True,
        widths=(6, 6),
        blocks=1,
    )


def rmse(net, noisy=NOISY, truth=SCENE, **options):
    return float(np.sqrt(np.mean((normeq.denoise(noisy, model=net, **options) - truth) ** 2)))


def same_weights(first, second):
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def test_tuning_lowers_the_error_and_says_by_how_much(net):
    before = rmse(net)
    tuned = normeq.adapt(NOISY, net, noise=NOISE, steps=50)
    about = tuned.card["adapted"]
    assert about["improved"]
    assert about["image_count"] == about["planes"] == 1
    assert "sigma" in about["noise"][0]
    assert rmse(tuned) < 0.97 * before
    assert "adapted in 50 steps: the estimated RMSE fell from" in about["result"]


def test_the_network_it_starts_from_stays_as_it_is(net):
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    normeq.adapt(NOISY, net, noise=NOISE, steps=4)
    assert all(torch.equal(weights[name], tensor) for name, tensor in net.state_dict().items())
    assert net.card == {}


def test_the_same_seed_gives_the_same_weights(net):
    once, again, other = (
        normeq.adapt(NOISY, net, noise=NOISE, steps=8, seed=seed) for seed in (3, 3, 4)
    )
    assert same_weights(once, again)
    assert not same_weights(once, other)


@pytest.mark.parametrize("gain", [2.0**-7, 2.0**9])
def test_a_power_of_two_changes_no_bit_of_the_weights(net, gain):
    assert same_weights(
        normeq.adapt(NOISY, net, noise=NOISE, steps=8),
        normeq.adapt(gain * NOISY, net, noise=NOISE.rescaled(gain), steps=8),
    )


def test_other_units_give_the_same_result(net):
    """After 100 steps, to a thousandth of the spread."""
    once = normeq.denoise(NOISY, model=normeq.adapt(NOISY, net, noise=NOISE, steps=100))
    moved = 0.37 * NOISY + 1234.5
    result = normeq.denoise(
        moved, model=normeq.adapt(moved, net, noise=NOISE.rescaled(0.37, 1234.5), steps=100)
    )
    assert np.abs((result - 1234.5) / 0.37 - once).max() < 1e-3 * NOISY.std()


class _MisleadingStream(TileStream):
    """Teaches a network to double the noise."""

    def batch(self, number, is_lesson):
        batch = super().batch(number, is_lesson)
        batch.target.copy_(2 * batch.given.inputs)
        return batch


def test_worse_weights_are_not_kept(net, monkeypatch, caplog):
    net = normeq.adapt(NOISY, net, noise=NOISE, steps=50)
    monkeypatch.setattr(tuning_job, "TileStream", _MisleadingStream)
    with caplog.at_level(logging.WARNING):
        tuned = normeq.adapt(NOISY, net, noise=NOISE, steps=12)
    assert "the original weights are kept: after 12 steps" in caplog.text
    assert not tuned.card["adapted"]["improved"]
    assert same_weights(tuned, net)


def test_nothing_is_tuned_if_the_noise_is_not_what_it_seems(caplog):
    """Where light is scarce, no transform makes the noise uniform, and estimates are wrong."""
    dark = poisson_gaussian(np.maximum(SCENE - 100, 0) / 10, 3.0, 1.0, np.random.default_rng(0))
    tuned = normeq.adapt(dark, "default-real", steps=40)
    assert "the original weights are kept, because the gain cannot be" in caplog.text
    assert tuned.card["adapted"]["steps"] == 0
    assert same_weights(tuned, normeq.load("default-real"))


def test_noise_that_grows_with_the_signal(told_net):
    truth = np.maximum(SCENE, 0)
    noisy = poisson_gaussian(truth, 2.0, 3.0, np.random.default_rng(0))
    model = NoiseModel.from_camera(2.0, 3.0)
    before = rmse(told_net, noisy, truth, noise=model)
    tuned = normeq.adapt(noisy, told_net, noise=model, steps=50)
    assert rmse(tuned, noisy, truth, noise=model) < 0.97 * before


def test_a_map_of_levels(told_net):
    levels = np.where(np.arange(160) < 80, 4.0, 16.0) * np.ones((144, 1))
    noisy = SCENE + levels * np.random.default_rng(0).standard_normal(SCENE.shape)
    before = rmse(told_net, noisy, sigma=levels)
    tuned = normeq.adapt(noisy, told_net, levels, noise="gaussian", steps=50)
    assert rmse(tuned, noisy, sigma=levels) < 0.97 * before


def test_missing_pixels_do_not_count(net):
    holes = NOISY.copy()
    holes[30:50, 60:90] = np.nan
    before = rmse(net)
    assert rmse(normeq.adapt(holes, net, noise=NOISE, steps=50)) < 0.97 * before


BLURRED = Correlation(((1.0, 0.6, 0.1), (0.6, 0.36, 0.06), (0.1, 0.06, 0.01)))


def test_correlated_noise_is_refused(told_net, caplog):
    white = np.random.default_rng(0).standard_normal(SCENE.shape)
    noisy = SCENE + 8 * coloured(white, BLURRED)
    with pytest.raises(InputError, match="no image has white noise"):
        normeq.adapt(noisy, told_net, noise=NoiseModel.uniform(8.0, correlation=BLURRED))
    assert "image 1 is left out: its noise is correlated (length" in caplog.text


def test_frames_of_one_scene_teach_each_other_whatever_the_noise(net):
    white = np.random.default_rng(0).standard_normal((4, *SCENE.shape))
    stack = SCENE + 8 * coloured(white, BLURRED)
    before = rmse(net, stack[0])
    tuned = normeq.adapt(stack, net, axes="TYX", same_scene=True, steps=50)
    assert tuned.card["adapted"]["improved"]
    assert rmse(tuned, stack[0]) < 0.97 * before


@pytest.mark.parametrize(("shape", "axes"), [((144, 160), "YX"), ((2, 2, 144, 160), "TZYX")])
def test_frames_of_one_scene_are_a_stack_along_one_axis(net, shape, axes):
    stack = np.broadcast_to(NOISY, shape)
    with pytest.raises(InputError, match="at least two frames along a single axis"):
        normeq.adapt(stack, net, axes=axes, same_scene=True)


def test_a_stack_on_disk_is_read_tile_by_tile(net, tmp_path):
    stack = NOISY + np.zeros((12, 1, 1))
    tifffile.imwrite(tmp_path / "stack.tif", stack, metadata={"axes": "TYX"})
    tuned = normeq.adapt(tmp_path / "stack.tif", net, noise=NOISE, steps=3)
    assert tuned.card["adapted"]["planes"] == 12
    assert tuned.card["adapted"]["images"] == ["stack.tif"]


class _CountingSource(ArraySource):
    """An image that counts the pixels that are read of it."""

    pixels_read = 0

    def read_region(self, frame, rows, columns):
        region = super().read_region(frame, rows, columns)
        self.pixels_read += region.size
        return region


def test_no_more_of_a_large_stack_is_read_than_is_used(net):
    plane = np.random.default_rng(0).normal(100, 8, (1024, 1024))
    source = _CountingSource(np.broadcast_to(plane, (60, 1024, 1024)), "TYX")
    tune({"stack": source}, Choice(net, "cpu"), NoiseOptions(noise=NOISE), TuningOptions(2))
    assert source.pixels_read < source.pixels / 20


def test_a_folder_is_tuned_on_as_a_whole(net, tmp_path):
    for name in ("a", "b"):
        tifffile.imwrite(tmp_path / f"{name}.tif", NOISY.astype(np.float32))
    tuned = normeq.adapt(tmp_path, net, noise=NOISE, steps=2)
    assert tuned.card["adapted"]["image_count"] == 2


def test_tuned_weights_are_a_model_like_any_other(net, tmp_path):
    tuned = normeq.adapt(NOISY, net, noise=NOISE, steps=4)
    normeq.save(tuned, tmp_path / "mine.safetensors", tuned.card)
    again = models.load(tmp_path / "mine.safetensors")
    assert again.card == tuned.card
    assert rmse(str(tmp_path / "mine.safetensors")) == rmse(tuned)


def options_for(folder, **changes):
    return TuningOptions(steps=12, checkpoints=folder, **changes)


def tuned_by(net, options):
    return tune(
        {"image": ArraySource(NOISY, "YX")}, Choice(net, "cpu"), NoiseOptions(noise=NOISE), options
    )


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(net, tmp_path, monkeypatch):
    whole = tuned_by(net, options_for(tmp_path / "whole"))
    asked = iter(range(100))
    stops_at = _stopping_after(lambda: next(asked) > 7)
    with monkeypatch.context() as patch:
        patch.setattr(tuning_job, "stop_requests", stops_at)
        first = tuned_by(net, options_for(tmp_path / "parts"))
    assert first.stopped
    assert first.network.card["adapted"]["steps"] < 12
    with pytest.raises(UsageError, match="continue it with --resume"):
        tuned_by(net, options_for(tmp_path / "parts"))
    second = tuned_by(net, options_for(tmp_path / "parts", resume=True))
    assert not second.stopped
    assert second.network.card["adapted"]["steps"] == 12
    assert same_weights(whole.network, second.network)


def _stopping_after(requested):
    from contextlib import contextmanager

    @contextmanager
    def requests():
        yield requested

    return requests


def test_time_is_a_limit_too(net):
    tuned = normeq.adapt(NOISY, net, noise=NOISE, steps=1000, minutes=1e-6)
    assert tuned.card["adapted"]["steps"] <= 1


def test_what_cannot_be_adapted_is_said_in_a_sentence(net):
    with pytest.raises(UsageError, match="steps is 0"):
        normeq.adapt(NOISY, net, noise=NOISE, steps=0)
    with pytest.raises(UsageError, match="minutes is -1"):
        normeq.adapt(NOISY, net, noise=NOISE, minutes=-1)
    with pytest.raises(InputError, match="the images are too small to adapt to"):
        normeq.adapt(NOISY[:60, :60], net)
    with pytest.raises(InputError, match="no noise was found"):
        normeq.adapt(np.ones((144, 160)), net)
    with pytest.raises(UsageError, match="bm3d cannot be adapted"):
        normeq.adapt(NOISY, "bm3d")
    wrapped = normeq.create("unet", "norm-equiv-wrapped", widths=(4, 4), blocks=1)
    with pytest.raises(UsageError, match="cannot be adapted"):
        normeq.adapt(NOISY, wrapped)
