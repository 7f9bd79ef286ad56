"""What a denoiser is told about the noise of every pixel reaches it, in every tiling and unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_networks import tiny
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import normeq
from normeq.errors import UsageError

NET = tiny("unet", "norm-equiv-residual", takes_sigma="optional", takes_correlation=True).double()
RNG = np.random.default_rng(0)
IMAGE = 100 + 20 * RNG.standard_normal((37, 46))
MAP = 5 + 20 * RNG.random(IMAGE.shape)


def close(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    return bool(np.abs(ours - theirs).max() <= 1e-9 * theirs.std())


def test_a_map_is_what_the_network_gets() -> None:
    with torch.no_grad():
        batch, levels = (torch.from_numpy(array)[None, None] for array in (IMAGE, MAP))
        expected = NET(batch, levels)[0, 0].numpy()
    assert close(normeq.denoise(IMAGE, MAP, model=NET), expected)
    assert not close(normeq.denoise(IMAGE, MAP.mean(), model=NET), expected)


@given(gain=st.sampled_from([1e-3, 7.0]), offset=st.floats(-1e4, 1e4), tile=st.integers(8, 50))
def test_maps_follow_units_and_tiles(gain: float, offset: float, tile: int) -> None:
    sparse = np.where(MAP > 8, MAP, 1e-6)  # below the floor, which is that of the whole map
    whole = normeq.denoise(IMAGE, sparse, model=NET)
    scaled = normeq.denoise(gain * IMAGE + offset, gain * sparse, model=NET, tile=tile)
    assert np.abs(scaled - (gain * whole + offset)).max() <= 1e-7 * gain * IMAGE.std()


def test_pixels_without_noise_come_back_unchanged() -> None:
    levels = MAP.copy()
    levels[:20, :20] = 0
    for tile in (None, 16):
        clean = normeq.denoise(IMAGE, levels, model=NET, tile=tile)
        np.testing.assert_array_equal(clean[:20, :20], IMAGE[:20, :20])
        assert (clean[20:] != IMAGE[20:]).any()


def test_a_map_for_every_plane_of_a_stack() -> None:
    stack, maps = np.stack([IMAGE, IMAGE]), np.stack([MAP, 2 * MAP])
    ours = normeq.denoise(stack, maps, model=NET)
    for plane, level, clean in zip(stack, maps, ours, strict=True):
        assert close(clean, normeq.denoise(plane, level, model=NET))


@pytest.mark.parametrize("levels", [MAP[1:], -MAP, np.full_like(MAP, np.nan)])
def test_maps_that_do_not_fit_are_refused(levels: NDArray[Any]) -> None:
    with pytest.raises(UsageError, match="sigma"):
        normeq.denoise(IMAGE, levels, model=NET)


def test_a_function_takes_one_level_not_a_map() -> None:
    with pytest.raises(UsageError, match="one noise level per plane"):
        normeq.denoise(IMAGE, MAP, model="bm3d")
