from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.noise.sampling import BUDGET, sampled_regions

EXTENT = st.integers(3, 5000)


@given(frames=st.integers(1, 300), height=EXTENT, width=EXTENT)
def test_regions_lie_inside_do_not_overlap_and_stay_within_the_budget(frames, height, width):
    regions = sampled_regions(frames, height, width)
    assert regions == sampled_regions(frames, height, width)
    pixels = 0
    for region in regions:
        assert 0 <= region.frame < frames
        assert 0 <= region.rows.start < region.rows.stop <= height
        assert 0 <= region.columns.start < region.columns.stop <= width
        pixels += (region.rows.stop - region.rows.start) * (
            region.columns.stop - region.columns.start
        )
    assert min(BUDGET // 2, frames * height * width // 2) <= pixels <= BUDGET
    places = {(r.frame, r.rows.start, r.columns.start) for r in regions}
    assert len(places) == len(regions)


def test_a_small_image_is_taken_whole():
    (region,) = sampled_regions(1, 1000, 1000)
    assert (region.rows, region.columns) == (slice(0, 1000), slice(0, 1000))
    assert len(sampled_regions(16, 256, 256)) == 16


@pytest.mark.parametrize("shape", [(1, 30000, 30000), (200, 512, 512), (1000, 2000, 2000)])
def test_regions_are_spread_over_frames_rows_and_columns(shape):
    regions = sampled_regions(*shape)
    frames = np.array([region.frame for region in regions])
    rows = np.array([region.rows.start for region in regions])
    columns = np.array([region.columns.start for region in regions])
    if shape[0] > 1:
        assert np.ptp(frames) > 0.5 * shape[0]
    if shape[1] > 1024:
        assert np.ptp(rows) > 0.6 * shape[1]
        assert np.ptp(columns) > 0.6 * shape[2]


@pytest.mark.parametrize("shape", [(1, 4, 10_000_000), (1, 10_000_000, 4)])
def test_long_strips_are_sampled_in_pieces(shape):
    assert len(sampled_regions(*shape)) == 16
