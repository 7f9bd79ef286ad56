"""`normeq.denoise` on dask arrays: the result of the whole array, whatever the chunks are."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import numpy as np
import pytest
from helpers.small_networks import DENOISERS, tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import normeq
from normeq.denoising.network_denoiser import NetworkDenoiser
from normeq.errors import InputError, UsageError
from normeq.models import variants
from normeq.noise import NoiseModel, poisson_gaussian

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

# In double precision, so that a wrong pixel is not taken for the rounding of a network.
NET = tiny("unet", "norm-equiv-residual").double()
TOLD = tiny("drunet", "norm-equiv", takes_sigma="optional", takes_correlation=True).double()
COLOUR = tiny("unet", "norm-equiv-residual", channels=3).double()
WRAPPED = tiny("unet", "norm-equiv-wrapped").double()


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def noisy(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    values = 100 + 20 * np.random.default_rng(seed).standard_normal(shape)
    ramp = 30 * np.sin(np.arange(shape[-1]) / 5)
    return np.clip(values + ramp, 0, 255).astype(dtype)


@st.composite
def chunkings(draw: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Draw lengths of chunks along each axis: irregular, of one pixel, or of none."""
    chunks = []
    for length in shape:
        cuts = sorted(draw(st.lists(st.integers(0, length), max_size=6)))
        chunks.append(tuple(int(n) for n in np.diff([0, *cuts, length])))
    return tuple(chunks)


def assert_alike(ours: Any, theirs: NDArray[Any]) -> None:
    """Compare as the promise has it: 1e-6 of the spread; of integers few, and by one count."""
    assert ours.dtype == theirs.dtype
    if theirs.dtype.kind != "f":
        apart = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= 1e-4 * apart.size
        return
    known = theirs[np.isfinite(theirs)].astype(np.float64)
    spread, rounding = known.std(), 2 * np.finfo(theirs.dtype).eps * np.abs(known).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * spread + rounding)


def check(image: NDArray[Any], chunks: Any, *arguments: Any, **options: Any) -> None:
    """Denoise an array in memory and lazily, and compare."""
    lazy = da.from_array(image, chunks=chunks)
    result = normeq.denoise(lazy, *arguments, **options)
    assert isinstance(result, da.Array)
    assert (result.shape, result.chunks) == (lazy.shape, lazy.chunks)
    computed = result.compute()
    assert result.dtype == computed.dtype
    assert_alike(computed, normeq.denoise(image, *arguments, **options))


@given(
    chunks=chunkings((2, 39, 46)),
    dtype=st.sampled_from(["uint8", "int16", "uint64", "float16", "float32", "float64"]),
    net=st.sampled_from([NET, TOLD, WRAPPED]),
    tile=st.sampled_from([None, 16]),
)
def test_every_chunking_gives_the_result_of_the_whole(
    chunks: Any, dtype: str, net: Any, tile: int | None
) -> None:
    check(noisy((2, 39, 46), dtype), chunks, model=net, tile=tile)


@settings(max_examples=8)
@given(
    chunks=chunkings((40, 35)),
    name=st.sampled_from(DENOISERS),
    variant=st.sampled_from([name for name in variants("unet") if "norm" in name]),
)
def test_every_equivariant_network(chunks: Any, name: str, variant: str) -> None:
    check(noisy((40, 35)), chunks, model=tiny(name, variant).double())


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_shipped_model(dtype: str) -> None:
    check(noisy((1, 210, 230), dtype), (1, 105, 117))


@settings(max_examples=8)
@given(chunks=chunkings((34, 41)), holes=st.lists(st.integers(0, 34 * 41 - 1), max_size=30))
def test_missing_pixels_stay_and_are_filled_across_chunks(chunks: Any, holes: list[int]) -> None:
    image = noisy((34, 41))
    image.ravel()[holes] = np.nan
    image[5:25, 8:30] = np.inf  # deeper than it can be filled from its rim
    check(image, chunks, model=NET, nan="keep")
    check(image, chunks, model=NET, nan="keep", noise="gaussian")


@settings(max_examples=8)
@given(chunks=chunkings((2, 3, 24, 30)))
def test_channels_have_noise_models_of_their_own(chunks: Any) -> None:
    image = noisy((2, 3, 24, 30)) * np.array([1.0, 10.0, 0.1])[:, None, None]
    check(image, chunks, model=TOLD, axes="TCYX")
    check(image, chunks, model=TOLD, axes="TCYX", each_plane=True)


@pytest.mark.parametrize("axes", ["CYXS", "CSYX"])
def test_channels_of_colour_images_too(axes: str) -> None:
    image = noisy((2, 30, 30, 3)) * np.array([1.0, 10.0])[:, None, None, None]
    check(image.transpose(["CYXS".index(axis) for axis in axes]), 15, model=TOLD, axes=axes)


@settings(max_examples=8)
@given(chunks=chunkings((26, 31, 3)))
def test_colours_are_seen_together(chunks: Any) -> None:
    check(noisy((26, 31, 3), "uint8"), chunks, model=COLOUR, channel_axis=-1)


@pytest.mark.parametrize("axes", ["XYZ", "YZX", "ZXY"])
def test_axes_in_any_order(axes: str) -> None:
    check(noisy((20, 22, 24)), (7, 9, 5), model=NET, axes=axes)


@settings(max_examples=8)
@given(chunks=chunkings((48, 56)))
def test_noise_that_grows_with_the_signal_is_stabilised(chunks: Any) -> None:
    ramp = np.linspace(10, 500, 48 * 56).reshape(48, 56)
    image = poisson_gaussian(ramp, 4.0, 5.0, np.random.default_rng(0))
    check(image, chunks, model=TOLD, noise="poisson-gaussian")
    check(image, chunks, model=NET, noise=NoiseModel.from_camera(4.0, 5.0, 0.0))


def test_levels_and_maps_of_sigma() -> None:
    image = noisy((2, 30, 33))
    told = tiny("unet", "norm-equiv", blind=False).double()
    levels = np.abs(np.random.default_rng(1).normal(20, 5, (30, 33)))
    levels[3:6, 4:7] = 0  # which come back unchanged
    for sigma in (20.0, [15.0, 25.0], levels, "auto"):
        check(image, (1, 8, 9), sigma, model=told)
    check(image, (1, 8, 9), 20.0, model=told, strength=1.5)


def test_a_transform_may_be_learned() -> None:
    check(noisy((40, 44), "float32"), (13, 44), model=NET, noise="learned")


@pytest.mark.parametrize("chunks", [(5, 7), (48, 3)])
def test_mosaics(chunks: tuple[int, int]) -> None:
    image = noisy((2, 48, 40))
    image[:, ::2, ::2] += 100
    check(image, (1, *chunks), model=NET, bayer="RGGB")
    with pytest.raises(InputError, match="even number"):
        normeq.denoise(da.zeros((15, 16)), model=NET, bayer="RGGB")


def test_other_dtypes_are_rounded_and_clipped() -> None:
    image = noisy((40, 40), "float32") * 3
    check(image, 11, model=NET, output_dtype="uint8")
    assert normeq.denoise(image, model=NET, output_dtype="uint8").max() == 255


def test_functions_see_whole_planes_and_a_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    check(noisy((3, 20, 24)), (2, 20, 24), model="median_filter")
    assert "whole planes" not in caplog.text
    check(noisy((3, 20, 24)), (2, 7, 9), model="median_filter")
    assert "median_filter sees whole planes" in caplog.text
    assert "20 x 24 pixels" in caplog.text


def test_the_noise_is_found_from_pixels_that_the_shape_decides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = noisy((1, 1030, 1100), "float32")  # more pixels than an estimate looks at
    for chunks in (1100, 300, (1, 7, 1100)):
        normeq.denoise(da.from_array(image, chunks=chunks), model=TOLD)
    normeq.denoise(image, model=TOLD, axes="ZYX")
    lines = [record.message for record in caplog.records if record.message.startswith("noise")]
    assert len(lines) == 4
    assert len(set(lines)) == 1


def test_nothing_is_computed_but_what_the_noise_is_estimated_from() -> None:
    computed: list[int] = []

    def counted(block: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
        computed.append(block.size)
        return block

    image = da.from_array(noisy((1, 4096, 4096), "uint8"), chunks=(1, 128, 128))
    counting = image.map_blocks(counted, dtype="uint8", meta=np.empty((0, 0, 0), "uint8"))
    normeq.denoise(counting, model=NET, noise="gaussian", bayer="none")
    assert computed == []
    normeq.denoise(counting, model=NET)
    assert 0 < sum(computed) < image.size / 2
    with pytest.raises(InputError, match="NaN"):
        normeq.denoise(da.full((8, 8), np.nan, chunks=4), model=NET).compute()


def test_what_cannot_be_done_is_a_sentence() -> None:
    image = da.zeros((16, 16))
    with pytest.raises(UsageError, match="leave out progress and cancel"):
        normeq.denoise(image, model=NET, progress=True)
    with pytest.raises(InputError, match="is empty"):
        normeq.denoise(da.zeros((0, 16)), model=NET)
    with pytest.raises(InputError, match="booleans"):
        normeq.denoise(image > 0, model=NET)
    with pytest.raises(InputError, match=r"compute_chunk_sizes\(\)"):
        normeq.denoise(image[image[:, 0] > 0], model=NET)


def test_threads_and_processes_give_the_same() -> None:
    image = da.from_array(noisy((2, 60, 60)), chunks=(1, 30, 20))
    result = normeq.denoise(image, model=NET)
    expected = result.compute()
    np.testing.assert_array_equal(result.compute(scheduler="threads"), expected)


@pytest.mark.parametrize("name", DENOISERS)
@pytest.mark.parametrize("variant", variants("unet"))
def test_a_denoiser_travels_to_another_process(name: str, variant: str) -> None:
    denoiser = NetworkDenoiser(tiny(name, variant), name, device="cpu", prove=False)
    copy = pickle.loads(pickle.dumps(denoiser))
    tiles = np.random.default_rng(0).standard_normal((1, 1, 16, 16))
    np.testing.assert_array_equal(copy.run(tiles), denoiser.run(tiles))


# xarray --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, {"y": 9}])
def test_labelled_arrays_keep_their_labels(chunks: Any, caplog: pytest.LogCaptureFixture) -> None:
    xarray = pytest.importorskip("xarray")
    image = xarray.DataArray(
        noisy((20, 3, 24)),
        dims=("y", "channel", "x"),
        coords={"y": np.arange(20) * 0.5, "channel": ["a", "b", "c"]},
        attrs={"units": "counts"},
        name="raw",
    )
    caplog.set_level(logging.INFO)
    result = normeq.denoise(image if chunks is None else image.chunk(chunks), model=NET)
    assert isinstance(result, xarray.DataArray)
    assert (result.chunks is None) == (chunks is None)
    expected = normeq.denoise(image.to_numpy(), model=NET, axes="YCX")
    xarray.testing.assert_allclose(result.compute(), image.copy(data=expected), atol=2e-5)
    assert (result.dims, result.attrs, result.name) == (image.dims, image.attrs, "raw")
    assert "channel 2" in caplog.text  # dims name the axes


def test_a_labelled_array_without_rows_and_columns_has_its_planes_last() -> None:
    xarray = pytest.importorskip("xarray")
    image = xarray.DataArray(noisy((2, 20, 24)), dims=("band", "lat", "lon"))
    result = normeq.denoise(image, model=NET)
    np.testing.assert_array_equal(result, normeq.denoise(image.to_numpy(), model=NET))
