from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.denoising.tiles import Tile, align_up, spans
from normeq.errors import UsageError

lengths = st.integers(1, 60)
layout = {
    "tile": st.integers(1, 40),
    "halo": st.integers(0, 20),
    "stride": st.sampled_from([1, 2, 4, 8]),
}


@given(height=lengths, width=lengths, **layout)
def test_stitching_an_arange_image_gives_it_back(
    height: int, width: int, tile: int, halo: int, stride: int
) -> None:
    image = np.arange(height * width).reshape(height, width)
    stitched = np.full_like(image, -1)
    for rows, columns in product(*(spans(n, tile, halo, stride) for n in image.shape)):
        part = Tile(rows, columns)
        assert (stitched[part.kept] == -1).all(), "a pixel belongs to one tile only"
        stitched[part.kept] = image[rows.read, columns.read][part.crop]
    np.testing.assert_array_equal(stitched, image)


@given(length=lengths, **layout)
def test_a_span_reads_its_halo_and_starts_on_the_stride(
    length: int, tile: int, halo: int, stride: int
) -> None:
    for span in spans(length, tile, halo, stride):
        assert span.read_start % stride == 0
        assert span.read_stop % stride == 0 or span.read_stop == length
        assert span.read_start <= max(0, span.start - halo)
        assert span.read_stop >= min(length, span.stop + halo)
        assert span.stop - span.start <= tile


@pytest.mark.parametrize("arguments", [(0, 4), (4, 0), (4, 4, -1), (4, 4, 0, 0)])
def test_impossible_tiles_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="cannot cut"):
        spans(*arguments)


def test_align_up() -> None:
    assert [align_up(length, 4) for length in (0, 1, 4, 5)] == [0, 4, 4, 8]
