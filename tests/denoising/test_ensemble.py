"""The mean over symmetries: a denoiser like its parts, whatever way the image comes in."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers.small_networks import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

import normeq
from normeq.denoising.ensemble import EnsembleDenoiser
from normeq.denoising.network_denoiser import NetworkDenoiser
from normeq.errors import UsageError
from normeq.noise import Correlation, NoiseModel

NET = tiny("unet", "norm-equiv-residual", blind=True).double()
TOLD = tiny("unet", "norm-equiv", takes_sigma="optional", takes_correlation=True).double()
IMAGE = np.random.default_rng(0).normal(100, 10, (44, 61))


def mean_over_symmetries(net, image):
    parts = []
    for turns in range(4):
        for mirrored in (False, True):
            turned = np.rot90(image, turns)
            turned = turned.T if mirrored else turned
            result = normeq.denoise(turned, model=net)
            parts.append(np.rot90(result.T if mirrored else result, -turns))
    return np.mean(parts, 0)


def test_eight_are_the_mean_over_all_symmetries():
    image = IMAGE[:40, :56]  # sides that the network does not pad
    whole = normeq.denoise(image, model=NET, ensemble=8)
    np.testing.assert_allclose(whole, mean_over_symmetries(NET, image), atol=1e-9)
    turned = normeq.denoise(np.rot90(image), model=NET, ensemble=8)
    np.testing.assert_allclose(turned, np.rot90(whole), atol=1e-9)


def test_two_are_the_image_and_one_mirror_image():
    image = IMAGE[:40, :56]
    mirrored = normeq.denoise(image[::-1, ::-1].T, model=NET)[::-1, ::-1].T
    expected = (normeq.denoise(image, model=NET) + mirrored) / 2
    np.testing.assert_allclose(normeq.denoise(image, model=NET, ensemble=2), expected, atol=1e-9)


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("net", [NET, TOLD], ids=["blind", "told"])
def test_tiles_and_chunks_do_not_show(net, size):
    """Sides that are no multiples of the stride: mirrored tiles lie on another grid."""
    dask_array = pytest.importorskip("dask.array")
    model = NoiseModel.uniform(10.0, correlation=Correlation(((1.0, 0.5), (0.0, 0.0))))
    noise = "gaussian" if net is NET else model
    whole = normeq.denoise(IMAGE, model=net, noise=noise, ensemble=size)
    tiled = normeq.denoise(IMAGE, model=net, noise=noise, ensemble=size, tile=16)
    np.testing.assert_allclose(tiled, whole, atol=1e-9)
    lazy = normeq.denoise(
        dask_array.from_array(IMAGE, (20, 33)), model=net, noise=noise, ensemble=size
    )
    np.testing.assert_allclose(lazy.compute(), whole, atol=1e-9)


def test_maps_turn_with_the_image():
    levels = np.linspace(1, 20, 40 * 56).reshape(40, 56)
    whole = normeq.denoise(IMAGE[:40, :56], levels, model=TOLD, noise="gaussian", ensemble=8)
    turned = normeq.denoise(
        np.rot90(IMAGE[:40, :56]), np.rot90(levels), model=TOLD, noise="gaussian", ensemble=8
    )
    np.testing.assert_allclose(turned, np.rot90(whole), atol=1e-9)


def test_the_correlation_of_rows_becomes_that_of_columns():
    along = NoiseModel.uniform(10.0, correlation=Correlation(((1.0, 0.5), (0.0, 0.0))))
    down = NoiseModel.uniform(10.0, correlation=Correlation(((1.0, 0.0), (0.5, 0.0))))
    image = IMAGE[:40, :56]
    whole = normeq.denoise(image, model=TOLD, noise=along, ensemble=8)
    turned = normeq.denoise(image.T, model=TOLD, noise=down, ensemble=8)
    np.testing.assert_allclose(turned, whole.T, atol=1e-9)
    assert np.abs(whole - normeq.denoise(image, model=TOLD, noise=down, ensemble=8)).max() > 1e-6


@given(gain=st.floats(1e-3, 1e3), offset=st.floats(-1e4, 1e4))
@settings(max_examples=10, deadline=None)
def test_the_mean_is_equivariant(gain, offset):
    moved = normeq.denoise(gain * IMAGE + offset, model=NET, ensemble=8)
    expected = gain * normeq.denoise(IMAGE, model=NET, ensemble=8) + offset
    assert np.abs(moved - expected).max() < 1e-8 * gain * IMAGE.std() + 1e-12 * abs(offset)


def test_functions_have_ensembles_too():
    image = IMAGE[:20, :20]
    mean = normeq.denoise(image, model="median_filter", ensemble=8)
    np.testing.assert_allclose(mean, normeq.denoise(image, model="median_filter"), atol=1e-9)


def test_an_ensemble_is_another_denoiser_than_its_part():
    inner = NetworkDenoiser(NET, "net", device="cpu")
    sizes = [EnsembleDenoiser(inner, 2), EnsembleDenoiser(inner, 8)]
    assert len({inner.identity, *(each.identity for each in sizes)}) == 3
    assert sizes[1].name == "net, mean over 8 symmetries"
    copied = pickle.loads(pickle.dumps(sizes[1]))
    tiles = IMAGE[None, None, :40, :56]
    assert np.array_equal(copied.run(tiles), sizes[1].run(tiles))


def test_other_numbers_are_refused():
    with pytest.raises(UsageError, match="ensemble is 3: use 1, 2, 8"):
        normeq.denoise(IMAGE, model=NET, ensemble=3)
