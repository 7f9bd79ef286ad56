"""`normeq.denoise` on arrays: kinds, dtypes, axes, units, tiles."""

import logging
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_networks import DENOISERS, tiny
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import normeq
from normeq.denoising.missing import FILL_DEPTH
from normeq.errors import UsageError
from normeq.models import shipped, variants
from normeq.nn import AffineConv2d, SortPool
from normeq.noise import NoiseModel

NET = tiny("unet", "norm-equiv-residual")
NET_SIGMA = tiny("unet", "norm-equiv", blind=False)


def noisy(
    shape: tuple[int, ...] = (21, 26), dtype: Any = np.float64, seed: int = 0
) -> NDArray[Any]:
    return (100 + 20 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def assert_close(ours: Any, theirs: Any, spread: float, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * spread)


# Units ---------------------------------------------------------------------------------------


@given(
    gain=st.floats(-6, 6).map(lambda power: 10.0**power),
    offset=st.floats(-1e6, 1e6),
    tile=st.sampled_from([None, 8, 16]),
    name=st.sampled_from(DENOISERS),
    variant=st.sampled_from(["norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"]),
    sigma=st.sampled_from([None, 20.0]),
)
def test_denoising_commutes_with_a_change_of_units(
    gain: float, offset: float, tile: int | None, name: str, variant: str, sigma: float | None
) -> None:
    net = tiny(name, variant, blind=sigma is None)
    image = noisy()
    spread = gain * image.std()
    shift = offset * spread
    ours = normeq.denoise(
        gain * image + shift, None if sigma is None else gain * sigma, model=net, tile=tile
    )
    theirs = gain * normeq.denoise(image, sigma, model=net, tile=tile) + shift
    assert_close(ours, theirs, spread)


@given(gain=st.floats(1e-6, 1e6), offset=st.floats(-1e4, 1e4))
def test_single_precision_adds_only_its_own_rounding(gain: float, offset: float) -> None:
    image = noisy(dtype=np.float32)
    spread = gain * float(image.std())
    shift = offset * spread
    ours = normeq.denoise((gain * image.astype(float) + shift).astype(np.float32), model=NET)
    theirs = gain * normeq.denoise(image, model=NET).astype(float) + shift
    rounding = 4 * np.finfo(np.float32).eps * (abs(shift) + 10 * spread)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * spread + rounding)


def test_sigma_is_in_the_units_of_the_image_and_matters() -> None:
    image = noisy()
    weak, strong = (normeq.denoise(image, sigma, model=NET_SIGMA) for sigma in (1.0, 40.0))
    assert np.abs(weak - strong).max() > 0.01
    stack = np.stack([image, image])
    both = normeq.denoise(stack, [1.0, 40.0], model=NET_SIGMA)
    assert_close(both, np.stack([weak, strong]), image.std())


def test_the_wrapped_network_is_run_as_it_is_defined() -> None:
    net = tiny("ffdnet", "norm-equiv-wrapped").double()
    image = noisy((40, 40))
    with torch.inference_mode():
        whole = net(torch.from_numpy(image)[None, None])[0, 0].numpy()
    assert_close(normeq.denoise(image, model=net, tile=16), whole, image.std(), 1e-9)


@pytest.mark.parametrize("variant", ["ordinary", "scale-equiv"])
def test_networks_that_are_not_equivariant_are_not_normalised(variant: str) -> None:
    net = tiny("fdncnn", variant).double()
    image = noisy()
    if variant == "ordinary":
        with pytest.raises(UsageError, match="value_range"):
            normeq.denoise(image, model=net)
    else:
        with torch.inference_mode():
            plain = net(torch.from_numpy(image)[None, None])[0, 0].numpy()
        assert_close(normeq.denoise(image, model=net), plain, image.std(), 1e-9)
    with torch.inference_mode():
        scaled = net(torch.from_numpy((image - 50) / 100)[None, None])[0, 0].numpy()
    ranged = normeq.denoise(image, model=net, value_range=(50, 150))
    assert_close(ranged, scaled * 100 + 50, image.std(), 1e-9)


def test_networks_that_say_nothing_are_recognised_by_proof() -> None:
    layers = AffineConv2d(1, 4, 3, padding=1), SortPool(), AffineConv2d(4, 1, 1)
    net = torch.nn.Sequential(*layers)
    image = noisy()
    clean = normeq.denoise(image, model=net)
    assert_close(normeq.denoise(7 * image + 1e6, model=net), 7 * clean + 1e6, 7 * image.std())
    net[2] = torch.nn.Conv2d(4, 1, 1)  # which has a bias
    with pytest.raises(UsageError, match="value_range"):
        normeq.denoise(image, model=net)


def test_classical_methods_and_functions_see_the_image_itself() -> None:
    image = noisy((32, 32))
    np.testing.assert_allclose(
        normeq.denoise(image, 20.0, model="dct"), normeq.classical.dct(image, 20.0)
    )
    np.testing.assert_array_equal(
        normeq.denoise(image, 2.0, model=lambda plane, sigma: plane - sigma), image - 2
    )


# Tiles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [v for v in variants("unet") if v != "ordinary"])
@pytest.mark.parametrize("name", DENOISERS)
def test_tiled_equals_whole(name: str, variant: str) -> None:
    net = tiny(name, variant)
    image = noisy((67, 83))
    whole = normeq.denoise(image, model=net)
    # A network with random weights may amplify: then rounding is in units of what comes out.
    spread = max(image.std(), whole.std())
    for tile in (16, 23):
        assert_close(normeq.denoise(image, model=net, tile=tile), whole, spread)


@pytest.mark.parametrize("name", shipped())
def test_shipped_networks_tiled_and_in_any_units(name: str) -> None:
    net = normeq.load(name)
    image, sigma = noisy((net.channels, 150, 141)), None if net.blind else 20.0
    denoise = partial(normeq.denoise, model=name, axes="SYX" if net.channels > 1 else "ZYX")
    whole = denoise(image, sigma)
    assert_close(denoise(image, sigma, tile=72), whole, image.std())
    changed = denoise(1e-6 * image + 20, sigma and 1e-6 * sigma)
    assert_close(changed, 1e-6 * whole + 20, 1e-6 * image.std())
    assert whole.std() < image.std() / 2


def test_holes_are_filled_alike_in_every_tiling() -> None:
    image = noisy((70, 70))
    image[20:45, 15:50] = np.nan
    image[0, :3] = np.inf
    whole = normeq.denoise(image, model=NET, nan="keep")
    tiled = normeq.denoise(image, model=NET, nan="keep", tile=16)
    np.testing.assert_array_equal(~np.isfinite(whole), ~np.isfinite(image))
    np.testing.assert_array_equal(whole[0, :3], np.inf)
    valid = np.isfinite(image)
    assert_close(tiled[valid], whole[valid], image[valid].std())
    assert FILL_DEPTH < 12, "the hole above must be deeper than the fill, to test its middle"


def test_functions_too_get_holes_filled_in_the_units_of_the_image() -> None:
    image = noisy((60, 60))
    image[10:50, 10:50] = np.nan
    seen = []
    normeq.denoise(image, model=lambda plane: seen.append(plane) or plane, nan="keep")
    assert np.isfinite(seen[0]).all()
    assert_close(seen[0][30, 30], np.nanmean(image), 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 3), (5, 5), (3, 1, 7)])
@pytest.mark.parametrize("tile", [None, 4])
def test_small_and_odd_sizes(shape: tuple[int, ...], tile: int | None) -> None:
    image = noisy(shape)
    clean = normeq.denoise(image, model=NET, tile=tile)
    assert clean.shape == shape
    assert np.isfinite(clean).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -1e12, 255.0])
@pytest.mark.parametrize("net", [NET, tiny("fdncnn", "norm-equiv-wrapped")])
def test_a_constant_image_stays_constant(value: float, net: Any) -> None:
    image = np.full((12, 13), value)
    assert_close(normeq.denoise(image, model=net), image, max(abs(value), 1.0))


# Kinds of arrays -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    ["uint8", "uint16", "int8", "int16", "int32", "uint32", "int64", ">u2", "f2", "f4", "f8"],
)
def test_the_dtype_comes_back(dtype: str) -> None:
    image = noisy(dtype=dtype)
    clean = normeq.denoise(image, model=NET)
    assert clean.dtype == np.dtype(dtype).newbyteorder("=")
    exact = normeq.denoise(image.astype(np.float64), model=NET)
    if clean.dtype.kind in "iu":
        limits = np.iinfo(clean.dtype)
        exact = np.rint(np.clip(exact, limits.min, limits.max))
    np.testing.assert_allclose(clean, exact, rtol=2e-3 if dtype == "f2" else 1e-6, atol=1)
    assert normeq.denoise(image, model=NET, output_dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.uint8])
def test_tensors_come_back_as_tensors(dtype: torch.dtype) -> None:
    image = torch.from_numpy(noisy()).to(dtype)
    clean = normeq.denoise(image, model=NET)
    assert isinstance(clean, torch.Tensor)
    assert clean.dtype == dtype
    assert clean.shape == image.shape


class Labelled(np.ndarray):  # type: ignore[type-arg]
    """An array with a label, as arrays with units are."""

    def __array_finalize__(self, other: Any) -> None:
        self.label = getattr(other, "label", None)


class Convertible:
    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return noisy()


def test_other_kinds_of_arrays() -> None:
    labelled = noisy().view(Labelled)
    labelled.label = "counts"
    clean = normeq.denoise(labelled, model=NET)
    assert type(clean) is Labelled
    assert clean.label == "counts"
    converted = normeq.denoise(Convertible(), model=NET)
    np.testing.assert_array_equal(converted, normeq.denoise(noisy(), model=NET))
    assert normeq.denoise(noisy().tolist(), model=NET).shape == (21, 26)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((3, 21, 26), {}),
        ((2, 3, 21, 26), {"axes": "TZYX"}),
        ((21, 26, 3), {"channel_axis": -1}),
        ((21, 26, 3), {"axes": "YXC"}),
        ((3, 26, 21), {"axes": "CXY"}),
        ((2, 21, 3, 26), {"channel_axis": 2}),
    ],
)
def test_every_plane_is_denoised_on_its_own(
    shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    image = noisy(shape)
    axes = options.get("axes", "QQQ"[: len(shape) - 2] + "YX")
    if "channel_axis" in options:
        axes = {3: "YXC", 4: "QYCX"}[len(shape)]
    places = (axes.index("Y"), axes.index("X"))
    clean = np.moveaxis(normeq.denoise(image, model=NET, **options), places, (-2, -1))
    planes = np.moveaxis(image, places, (-2, -1))
    for index in np.ndindex(*planes.shape[:-2]):
        assert_close(clean[index], normeq.denoise(planes[index], model=NET), image.std())


def test_the_input_is_not_touched() -> None:
    image = noisy()
    before = image.copy()
    image.setflags(write=False)
    normeq.denoise(image, model=NET)
    np.testing.assert_array_equal(image, before)


def test_clipped_pixels_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    image = np.zeros((8, 8), np.uint8)
    image[2:4] = 255
    with caplog.at_level(logging.INFO, "normeq"):
        normeq.denoise(image, model=lambda plane: plane * 2 - 1)
    assert "64 pixels clipped to the range of uint8" in caplog.text


@pytest.mark.parametrize("shape", [(24, 20), (9, 33), (64, 64), (130, 150)])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_a_stack_and_its_plane_alone_give_the_same_bytes(
    shape: tuple[int, int], dtype: str
) -> None:
    stack = np.random.default_rng(0).normal(500, 40, (5, *shape)).astype(dtype)
    given = NoiseModel(gain=2.0, base=100.0, darkest=100.0, mean=500.0, brightest=700.0)
    options: list[dict[str, Any]] = [{"sigma": 40.0}, {"noise": given}, {"noise": "gaussian"}]
    for stated in options:
        together = normeq.denoise(stack, axes="TYX", **stated)
        alone = normeq.denoise(stack[3], axes="YX", **stated)
        assert together[3].tobytes() == alone.tobytes()
