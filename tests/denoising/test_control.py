"""Runs that are watched, cancelled, or given what they cannot use."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.small_networks import tiny

import normeq
from normeq.errors import Cancelled, ResultError, UsageError

NET = tiny("unet", "norm-equiv-residual")
IMAGE = np.random.default_rng(0).random((3, 40, 50))


def test_progress_is_told_to_a_function() -> None:
    shares: list[float] = []
    normeq.denoise(IMAGE, model=NET, tile=16, progress=shares.append)
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_progress_over_files_counts_the_bad_ones_too(tmp_path: Path) -> None:
    np.save(tmp_path / "image.npy", IMAGE)
    (tmp_path / "bad.npy").write_bytes(b"no image")
    shares: list[float] = []
    normeq.denoise_files(tmp_path, model=NET, progress=shares.append)
    assert shares[0] == pytest.approx(0.5), "the bad one comes first"
    assert shares[-1] == pytest.approx(1)


def test_a_run_can_be_cancelled_and_leaves_no_file(tmp_path: Path) -> None:
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        normeq.denoise(
            IMAGE, model=NET, tile=16, cancel=cancel, progress=lambda share: cancel.set()
        )
    np.save(tmp_path / "image.npy", IMAGE)
    with pytest.raises(Cancelled):
        normeq.denoise_files(tmp_path / "image.npy", model=NET, cancel=cancel)
    assert [path.name for path in tmp_path.iterdir()] == ["image.npy"]


def test_results_that_are_not_finite_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="NaN or infinite in plane 0"):
        normeq.denoise(IMAGE, model=lambda plane: plane * np.inf)
    net = tiny("unet", "norm-equiv", blind=False)
    with pytest.raises(ResultError, match="check its weights and sigma"):
        normeq.denoise(IMAGE, 1e300, model=net)
    np.save(tmp_path / "image.npy", IMAGE)
    [outcome] = normeq.denoise_files(tmp_path / "image.npy", model=lambda plane: plane * np.nan)
    assert outcome.status == "failed"
    assert not (tmp_path / "image.denoised.npy").exists()


def test_a_path_is_not_an_array() -> None:
    for path in ("cells.tif", Path("cells.tif")):
        with pytest.raises(UsageError, match=r"cells\.tif.*denoise_files"):
            normeq.denoise(path)


@pytest.mark.parametrize("variant", ["norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"])
def test_a_colour_network_sees_the_channels_together(variant: str) -> None:
    net = tiny("unet", variant, channels=3)
    image = np.random.default_rng(0).random((2, 21, 26, 3))
    clean = normeq.denoise(image, model=net, channel_axis=-1)
    assert clean.shape == image.shape
    planar = normeq.denoise(np.moveaxis(image, -1, 1), model=net, channel_axis=1)
    np.testing.assert_allclose(np.moveaxis(planar, 1, -1), clean, atol=1e-6)
    tiled = normeq.denoise(7 * image + 1000, model=net, channel_axis=-1, tile=16)
    np.testing.assert_allclose(tiled, 7 * clean + 1000, atol=1e-3)
    other = image.copy()
    other[..., 2] += np.random.default_rng(1).random(image.shape[:-1])
    changed = normeq.denoise(other, model=net, channel_axis=-1)
    assert np.abs(changed[..., 0] - clean[..., 0]).max() > 1e-3
