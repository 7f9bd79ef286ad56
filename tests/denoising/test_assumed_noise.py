"""What is assumed of an image's noise, and that it reaches the denoiser, in any units and tiles."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.small_networks import tiny
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from typer.testing import CliRunner

import normeq
from normeq.cli import app
from normeq.denoising.assumed_noise import assume_noise
from normeq.denoising.names import denoiser_for
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.told_noise import CORRELATED
from normeq.errors import UsageError
from normeq.images.array import ArraySource
from normeq.noise import NoiseModel, poisson_gaussian

TOLD = tiny("unet", "norm-equiv-residual", takes_sigma="optional", takes_correlation=True).double()
BLIND = tiny("unet", "norm-equiv-residual").double()
RAMP = np.add.outer(np.linspace(20, 400, 96), np.linspace(0, 100, 128))


def photons(seed: int = 0, gain: float = 4.0) -> NDArray[np.float64]:
    return poisson_gaussian(RAMP, gain, 6.0, np.random.default_rng(seed))


def correlated(seed: int = 0) -> NDArray[np.float64]:
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).standard_normal(RAMP.shape), 1.0)
    return RAMP + 12 * noise / noise.std()


def assumed(image: NDArray[Any], axes: str = "YX", **options: Any) -> Any:
    return assume_noise(denoiser_for(TOLD), ArraySource(image, axes), NoiseOptions(**options))


# What is found ---------------------------------------------------------------------------------


def test_noise_that_grows_with_the_signal_is_stabilised_and_told() -> None:
    noise = assumed(photons())
    plane = noise.of(0, 0)
    assert plane.transform is not None
    assert plane.level == 1.0
    assert noise.lines()[0].startswith("noise: signal-dependent, gain ")


def test_white_noise_of_one_level_is_told_as_such() -> None:
    white = RAMP + 12 * np.random.default_rng(0).standard_normal(RAMP.shape)
    plane = assumed(white).of(0, 0)
    assert plane.transform is None
    assert plane.level == pytest.approx(12, rel=0.1)
    assert plane.lengths == (0, 0)
    assert assumed(white, strength=1.5).of(0, 0).level == pytest.approx(18, rel=0.1)
    assert assumed(white, sigma="auto").of(0, 0).lengths == (0, 0)


def test_strength_counts_behind_a_learned_transform_too() -> None:
    assert assumed(photons(), noise="learned", strength=1.5).of(0, 0).level == 1.5


def test_the_correlation_is_told() -> None:
    noise = assumed(correlated())
    [measured] = noise.found.values()
    assert measured.mean_sigma == pytest.approx(12, rel=0.25)
    plane = noise.of(0, 0)
    assert plane.level == pytest.approx(CORRELATED * measured.mean_sigma)
    assert min(plane.lengths) > 0.7
    assert assumed(correlated(), noise=measured).of(0, 0).level == measured.mean_sigma
    stated = assumed(correlated(), sigma=12.0).of(0, 0)
    assert stated.level == 12
    assert min(stated.lengths) > 0.7
    assert assumed(correlated(), sigma=12.0, noise="gaussian").of(0, 0).lengths is None


def test_a_stack_has_one_model_for_each_channel() -> None:
    stack = np.stack([[photons(0, 4.0), photons(1, 16.0)], [photons(2, 4.0), photons(3, 16.0)]])
    noise = assumed(stack, "TCYX")
    assert list(noise.found) == ["channel 0", "channel 1"]
    assert noise.of(0, 0) == noise.of(2, 0) != noise.of(1, 0)
    every = assumed(stack, "TCYX", each_plane=True)
    assert len(every.found) == 4
    assert every.of(0, 0) != every.of(2, 0)


def test_what_is_too_small_to_be_estimated_is_denoised_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "normeq"):
        normeq.denoise(RAMP[:2, :2], model=TOLD)
    assert "not estimated" in caplog.text


# What comes out --------------------------------------------------------------------------------


@given(
    gain=st.sampled_from([1e-4, 0.5, 7.0, 1e3]),
    offset=st.floats(-1e4, 1e4),
    tile=st.sampled_from([None, 48]),
    kind=st.sampled_from(["auto", "poisson-gaussian", "gaussian"]),
    image=st.sampled_from([photons(), correlated()]),
    net=st.sampled_from([TOLD, BLIND]),
)
def test_denoising_by_an_estimate_commutes_with_a_change_of_units(
    gain: float, offset: float, tile: int | None, kind: Any, image: NDArray[Any], net: Any
) -> None:
    expected = gain * normeq.denoise(image, noise=kind, model=net) + offset
    found = normeq.denoise(gain * image + offset, noise=kind, model=net, tile=tile)
    rounding = 1e-13 * abs(offset) / (gain * image.std())
    tolerance = (1e-6 + 1e3 * rounding) * gain * image.std()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_stabilising_helps_where_the_noise_grows_with_the_signal() -> None:
    image = photons(gain=30.0)
    errors = {
        kind: np.square(normeq.denoise(image, noise=kind, model="bm3d", sigma=sigma) - RAMP).mean()
        for kind, sigma in (("gaussian", np.sqrt(30 * RAMP.mean() + 36)), ("auto", None))
    }
    assert errors["auto"] < 0.9 * errors["gaussian"]


def test_a_model_can_be_given_and_strength_changes_the_result() -> None:
    image = photons()
    model = NoiseModel.from_camera(4.0, 6.0, 0.0)
    usual = normeq.denoise(image, noise=model, model=TOLD)
    difference = np.abs(normeq.denoise(image, model=TOLD) - usual)
    assert np.median(difference) < 0.02 * image.std()
    stronger = normeq.denoise(image, noise=model, strength=2.0, model=TOLD)
    assert np.abs(stronger - usual).max() > 1e-3 * image.std()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"noise": "pink"}, "noise is 'pink'"),
        ({"noise": "poisson-gaussian", "sigma": 3.0}, "leave out either sigma or noise"),
        ({"strength": 0}, "strength is 0"),
        ({"sigma": "much"}, "sigma is 'much'"),
        ({"strength": 2.0, "model": BLIND}, "no noise level for strength"),
        ({"noise": "poisson-gaussian", "model": lambda y: y}, "units of its own"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        normeq.denoise(RAMP, **{"model": TOLD, **options})


# The command line ------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    np.save(tmp_path / "image.npy", np.stack([photons(0), photons(1)]))
    normeq.save(TOLD, tmp_path / "net.safetensors", {})
    return tmp_path


def run(files: Path, *options: str | Path) -> Any:
    command = ["denoise", files / "image.npy", "--model", files / "net.safetensors", "--overwrite"]
    return CliRunner().invoke(app, [str(word) for word in [*command, *options]])


def result(files: Path) -> NDArray[Any]:
    found: NDArray[Any] = np.load(files / "image.denoised.npy")
    return found


def test_what_was_found_is_said_in_one_line_and_in_json(files: Path) -> None:
    assert "\n  noise: signal-dependent, gain 4." in run(files).output
    printed = json.loads(run(files, "--json").stdout)
    assert printed["files"][0]["noise"][0]["image"]["gain"] == pytest.approx(4, rel=0.2)


def test_a_stated_level_is_said_and_not_the_estimate(files: Path) -> None:
    output = run(files, "--sigma", "3000").output
    assert "\n  noise: sigma 3000, as stated; " in output
    (files / "levels.txt").write_text("3000\n4000\n")
    output = run(files, "--sigma", files / "levels.txt").output
    assert "\n  noise: sigma as stated; " in output
    printed = json.loads(run(files, "--sigma", "3000", "--json").stdout)
    assert list(printed["files"][0]["noise"][0]["image"]) == ["correlation"]


def test_sigma_comes_from_a_table_or_a_map(files: Path) -> None:
    image = np.load(files / "image.npy")
    (files / "levels.txt").write_text("5\n50\n")
    assert run(files, "--sigma", files / "levels.txt", "--noise", "gaussian").exit_code == 0
    told = normeq.denoise(image, [5, 50], noise="gaussian", model=TOLD)
    np.testing.assert_allclose(result(files), told, atol=1e-6)
    levels = np.linspace(1, 50, RAMP.size, dtype=np.float32).reshape(RAMP.shape)
    normeq.images.write(files / "map.tif", levels)
    assert run(files, "--sigma", files / "map.tif", "--noise", "gaussian").exit_code == 0
    told = normeq.denoise(image, levels, noise="gaussian", model=TOLD)
    np.testing.assert_allclose(result(files), told, atol=1e-6)
    assert "neither a number" in run(files, "--sigma", "levels.tif").output


def test_a_calibrated_camera(files: Path) -> None:
    assert run(files, "--gain", "4", "--read-noise", "6", "--offset", "0").exit_code == 0
    model = NoiseModel.from_camera(4.0, 6.0, 0.0)
    told = normeq.denoise(np.load(files / "image.npy"), noise=model, model=TOLD)
    np.testing.assert_allclose(result(files), told, atol=1e-6)
    assert "pass --gain" in run(files, "--offset", "100").output
    assert "leave out --noise" in run(files, "--gain", "2", "--sigma", "3").output
