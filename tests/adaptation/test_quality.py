"""The quality of results without ground truth: intervals, verdicts, and how they are shown."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from skimage.data import camera
from typer.testing import CliRunner

import normeq
from normeq.adaptation.error_interval import ErrorSums, LevelError, error_interval, noise_energy
from normeq.cli import app
from normeq.errors import UsageError
from normeq.noise import Correlation, coloured
from normeq.noise.correlation import WHITE

Floats = NDArray[np.float64]
CLEAN = camera()[128:224, 200:296].astype(np.float64)


def noisy(sigma: float, seed: int = 0) -> Floats:
    return CLEAN + np.random.default_rng(seed).normal(0, sigma, CLEAN.shape)


def smoothed(image: Floats) -> Floats:
    return ndimage.uniform_filter(image, 3, mode="mirror")


def mean(image: Floats, sigma: float) -> Floats:
    return smoothed(image)


def test_intervals_hold_the_error_of_known_noise() -> None:
    inside = 0
    for seed, sigma in enumerate((5.0, 15.0, 30.0, 50.0)):
        image = noisy(sigma, seed)
        report = normeq.quality(image, sigma, noise="gaussian", probes=1)
        result = normeq.denoise(image, sigma, noise="gaussian")
        inside += report.low <= np.sqrt(np.mean((result - CLEAN) ** 2)) <= report.high
        assert report.is_known == (report.high**2 <= 2 * report.low**2)
        assert report.sigma == pytest.approx(sigma)
    assert inside >= 3


def test_intervals_hold_the_error_of_any_denoiser() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(10):
        image = CLEAN + rng.normal(0, 15.0, CLEAN.shape)
        report = normeq.quality(image, 15.0, model=mean, probes=1)
        inside += report.low <= np.sqrt(np.mean((smoothed(image) - CLEAN) ** 2)) <= report.high
    assert inside >= 7


@settings(max_examples=3, deadline=None)
@given(gain=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_reports_follow_units(gain: float, offset: float) -> None:
    image = noisy(12.0)[:48, :48]
    report = normeq.quality(image, probes=1)
    other = normeq.quality(gain * image + gain * offset, probes=1)
    for name in ("rmse", "low", "high", "sigma", "noise_left"):
        assert getattr(other, name) == pytest.approx(gain * getattr(report, name), rel=1e-3)
    assert other.psnr == pytest.approx(report.psnr, abs=0.01)
    for one, two in zip(report.findings, other.findings, strict=True):
        assert two.found == pytest.approx(one.found, rel=1e-2, abs=1e-3)


def test_white_noise_gives_no_warning() -> None:
    report = normeq.quality(noisy(15.0), probes=1)
    assert report.warnings == []
    assert "looks like the noise" in "\n".join(report.lines())


def test_correlated_noise_that_is_taken_for_white_gives_a_warning() -> None:
    rng = np.random.default_rng(0)
    noise = ndimage.gaussian_filter(rng.normal(0, 1, (160, 160)), 1.0)
    scene = 100 + 50 * np.sin(np.add.outer(np.arange(160.0), np.arange(160.0)) / 20)
    image = scene + 15 * noise / noise.std()
    report = normeq.quality(image, noise="gaussian", probes=1)
    assert any("correlated" in warning for warning in report.warnings)
    assert any("--noise auto" in warning for warning in report.warnings)


def test_a_wrong_level_gives_a_warning() -> None:
    too_low = normeq.quality(noisy(20.0), 5.0, noise="gaussian", probes=1)
    too_high = normeq.quality(noisy(10.0), 40.0, noise="gaussian", probes=1)
    assert any("stronger than stated" in warning for warning in too_low.warnings)
    assert any("weaker than stated" in warning for warning in too_high.warnings)


def test_an_unknown_level_is_admitted() -> None:
    sums = ErrorSums(65536, 65536 * 50.0, 65536 * 625.0, 65536 * 50.0, 0.0, 0.0, 0.0)
    exact = error_interval(sums, LevelError(), is_network=True)
    vague = error_interval(sums, LevelError(0.3), is_network=True)
    assert exact.is_known
    assert not vague.is_known
    assert vague.low < exact.low <= exact.mse <= exact.high < vague.high


@pytest.mark.parametrize("estimated", [False, True])
def test_processed_photographs_have_a_larger_error_that_is_less_well_known(estimated: bool) -> None:
    sums = ErrorSums(65536, 65536 * 50.0, 65536 * 625.0, 65536 * 50.0, 0.0, 0.0, 0.0)
    gray = LevelError(0.05, estimated, correlated=True)
    channels, camera = (
        error_interval(sums, level, is_network=True)
        for level in (gray, replace(gray, in_color=True))
    )
    assert camera.mse > 2 * channels.mse
    assert camera.high / camera.low > channels.high / channels.low
    white = LevelError(0.05, estimated)
    assert error_interval(sums, white, True) == error_interval(
        sums, replace(white, in_color=True), True
    )


def test_energy_of_noise_is_the_variance_of_a_weighted_sum() -> None:
    rng = np.random.default_rng(0)
    weights, sigma = rng.normal(size=(24, 20)), rng.uniform(1, 2, (24, 20))
    correlation = Correlation(((1.0, 0.5), (0.4, 0.2)))
    draws = [coloured(rng.normal(size=(64, 64)), correlation)[:24, :20] for _ in range(1000)]
    found = np.var([np.sum(weights * sigma * draw) for draw in draws])
    assert noise_energy(weights, sigma, correlation) == pytest.approx(found, rel=0.15)
    assert noise_energy(weights, sigma, WHITE) == pytest.approx(np.sum((weights * sigma) ** 2))


def test_tiles_stacks_and_channels_are_judged() -> None:
    image = noisy(15.0)
    whole, tiled = (normeq.quality(image, probes=1, tile=tile) for tile in (None, 40))
    assert tiled.rmse == pytest.approx(whole.rmse, rel=1e-3)
    assert normeq.quality(np.stack([image, image]), probes=1).pixels == 2 * image.size
    for options in ({"channel_axis": -1}, {"axes": "YXC"}):
        channels = normeq.quality(np.stack([image] * 3, -1), probes=1, **options)
        assert channels.rmse == pytest.approx(whole.rmse, rel=0.1)


def test_pixels_without_a_value_do_not_count() -> None:
    image = noisy(15.0)
    image[10:20, 30:40] = np.nan
    report = normeq.quality(image, probes=1, nan="keep")
    assert report.pixels == image.size - 100
    assert np.isfinite(report.rmse)


def test_a_constant_image_has_no_error() -> None:
    report = normeq.quality(np.full((64, 64), 7.0), probes=1)
    assert report.rmse == 0
    assert json.dumps(report.to_dict(), allow_nan=False)


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(UsageError, match="probes is 0"):
        normeq.quality(noisy(15.0), probes=0)
    with pytest.raises(UsageError, match="arrays are needed"):
        normeq.quality("image.tif")
    da = pytest.importorskip("dask.array")
    with pytest.raises(UsageError, match="dask"):
        normeq.quality(da.from_array(noisy(15.0)))


def call(*words: Any) -> Any:
    return CliRunner().invoke(app, ["denoise", *map(str, words)])


def test_the_command_reports(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    np.save(tmp_path / "a.npy", noisy(15.0)[:64, :64])
    told = call(tmp_path / "a.npy", "--report", "--probes", 1)
    assert told.exit_code == 0, told.output
    assert "quality: " in told.stdout
    assert "autocorrelation of neighbours" in told.stdout
    assert (tmp_path / "a.denoised.report.png").stat().st_size > 10_000
    again = call(tmp_path / "a.npy", "--report", "--probes", 1, "--overwrite", "--json")
    [file] = json.loads(again.stdout)["files"]
    assert file["quality"]["low"] <= file["quality"]["rmse"] <= file["quality"]["high"]
    assert Path(file["report"]).name == "a.denoised.report.png"


def test_bad_options_get_sentences(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", noisy(15.0)[:32, :32])
    assert "--probes belongs to" in call(tmp_path / "a.npy", "--probes", 3).output
    assert "leave out" in call("-", "--report").output
    assert "probes is 0" in call(tmp_path / "a.npy", "--std", "--probes", 0).output
