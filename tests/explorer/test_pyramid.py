from __future__ import annotations

import numpy as np
import pytest

from normeq.explorer.pyramid import TILE, RecentArrays, TilePlace, grid, tile_pixels, top_level


@pytest.mark.parametrize("size", [(1, 1), (TILE, TILE + 1), (3 * TILE - 5, 2 * TILE + 7)])
def test_tiles_cover_an_image_once_and_higher_levels_average_it(size: tuple[int, int]) -> None:
    image = np.arange(size[0] * size[1], dtype=np.float64).reshape(*size, 1)

    def tile(place: TilePlace) -> np.ndarray:
        if place.level:
            return tile_pixels(place, size, tile)
        return image[place.region(*size)]

    rows, columns = grid(*size, 0)
    stitched = [
        np.concatenate([tile(TilePlace(0, 0, row, column)) for column in range(columns)], axis=1)
        for row in range(rows)
    ]
    assert np.array_equal(np.concatenate(stitched), image)
    top = top_level(*size)
    assert grid(*size, top) == (1, 1)
    reduced = tile(TilePlace(0, top, 0, 0))
    assert reduced.shape == (*(-(-length // 2**top) for length in size), 1)
    if top:
        side = 2**top
        assert reduced[0, 0, 0] == pytest.approx(image[:side, :side].mean())


def test_old_arrays_are_forgotten_beyond_the_limit() -> None:
    recent = RecentArrays(3 * 80)
    for number in range(3):
        recent.keep(number, np.full(10, float(number)))
    assert recent.get(0) is not None  # now the youngest
    recent.keep(3, np.zeros(10))
    assert recent.get(1) is None
    assert [recent.get(number) is None for number in (0, 2, 3)] == [False] * 3
    recent.keep(3, np.zeros(20))  # in place of the other, which counts no more
    assert recent.get(0) is None
    assert recent.get(2) is not None
