import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.denoising.missing import FILL_DEPTH, fill_missing
from normeq.denoising.units import Moments, merged_moments, to_dtype


@given(offset=st.sampled_from([0.0, 1e6, -1e12]), cuts=st.lists(st.integers(1, 30), max_size=4))
def test_statistics_do_not_depend_on_the_parts(offset: float, cuts: list[int]) -> None:
    values = np.random.default_rng(0).normal(0, 1, (31, 7)) + offset
    parts = np.split(values, sorted(cuts))
    found = merged_moments(
        Moments.of(part, np.zeros(part.shape, bool)) for part in parts
    ).statistics
    relative = values - offset
    assert found.count == values.size
    assert found.mean == pytest.approx(relative.mean() + offset, rel=1e-15)
    assert found.spread == pytest.approx(relative.std(), rel=1e-12)


def test_a_constant_plane_has_no_spread_at_all() -> None:
    part = np.full((5, 7), 0.1)
    moments = Moments.of(part, np.zeros(part.shape, bool))
    assert merged_moments([moments] * 3).statistics.spread == 0.0


def test_nothing_but_missing_pixels() -> None:
    part = np.full((2, 2), np.nan)
    found = Moments.of(part, np.isnan(part)).statistics
    assert (found.count, found.missing, found.spread) == (0, 4, 0.0)


def test_a_fill_reaches_no_further_than_its_depth() -> None:
    values = np.ones((1, 40))
    missing = np.zeros((1, 40), bool)
    missing[0, 10:30] = True
    filled = fill_missing(values, missing, mean=0.5)
    np.testing.assert_array_equal(filled[0, : 10 + FILL_DEPTH], 1)
    np.testing.assert_array_equal(filled[0, 10 + FILL_DEPTH : 30 - FILL_DEPTH], 0.5)


def test_rounding_and_clipping() -> None:
    pixels, clipped = to_dtype(np.array([-0.6, -0.4, 2.5, 3.5, 255.4, 256.0]), np.dtype("uint8"))
    np.testing.assert_array_equal(pixels, [0, 0, 2, 4, 255, 255])
    assert clipped == 2
    for dtype in (np.int64, np.uint64):
        pixels, clipped = to_dtype(np.array([1e30, -1e30]), np.dtype(dtype))
        limits = np.iinfo(dtype)
        assert clipped == 2
        assert pixels[0] > 0.99 * limits.max
        assert pixels[1] == limits.min
    halves, clipped = to_dtype(np.array([1e5, 0.1]), np.dtype("float16"))
    assert clipped == 1
    assert np.isfinite(halves).all()
