"""Block matching against exhaustive search, and aggregation against the identity."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from normeq.classical.patch_matching import Aggregate, gather, match


def exhaustive(plane: np.ndarray, row: int, column: int, size: int, radius: int) -> list[float]:
    """All mean squared differences from one reference patch, ascending."""
    reference = plane[row : row + size, column : column + size]
    rows = range(max(row - radius, 0), min(row + radius, plane.shape[0] - size) + 1)
    columns = range(max(column - radius, 0), min(column + radius, plane.shape[1] - size) + 1)
    return sorted(
        float(np.mean((plane[y : y + size, x : x + size] - reference) ** 2))
        for y in rows
        for x in columns
    )


@settings(deadline=None, max_examples=25)
@given(
    height=st.integers(9, 16),
    width=st.integers(9, 16),
    size=st.integers(1, 9),
    step=st.integers(1, 5),
    radius=st.integers(0, 5),
    seed=st.integers(0, 1000),
)
def test_matches_are_the_nearest(
    height: int, width: int, size: int, step: int, radius: int, seed: int
) -> None:
    plane = np.random.default_rng(seed).standard_normal((height, width))
    found = list(match(torch.from_numpy(plane), size, step=step, radius=radius, count=6))
    corners = torch.cat([matches.corners for matches in found]).numpy()
    distances = torch.cat([matches.distances for matches in found]).numpy()
    rows = sorted({*range(0, height - size + 1, step), height - size})
    columns = sorted({*range(0, width - size + 1, step), width - size})
    references = [(row, column) for row in rows for column in columns]
    assert len(corners) == len(references)
    for (row, column), corner, distance in zip(references, corners, distances, strict=True):
        assert corner[0] == row * width + column
        nearest = exhaustive(plane, row, column, size, radius)[: len(distance)]
        np.testing.assert_allclose(distance, nearest, atol=1e-12)
        y, x = np.divmod(corner, width)
        at_corners = [
            np.mean(
                (
                    plane[i : i + size, j : j + size]
                    - plane[row : row + size, column : column + size]
                )
                ** 2
            )
            for i, j in zip(y, x, strict=True)
        ]
        np.testing.assert_allclose(at_corners, distance, atol=1e-12)


def test_bands_make_no_difference(monkeypatch) -> None:
    plane = torch.rand(30, 25, dtype=torch.float64)
    [whole] = match(plane, 4, step=3, radius=4, count=7)
    monkeypatch.setattr("normeq.classical.patch_matching._BAND_DISTANCES", 1)
    bands = list(match(plane, 4, step=3, radius=4, count=7))
    assert len(bands) > 5
    torch.testing.assert_close(torch.cat([band.corners for band in bands]), whole.corners)
    torch.testing.assert_close(torch.cat([band.distances for band in bands]), whole.distances)


def test_a_constant_plane_is_covered() -> None:
    plane = torch.full((20, 20), 3.0)
    aggregate = Aggregate(plane, 4)
    for corners, _ in match(plane, 4, step=3, radius=6, count=5):
        aggregate.add(corners, gather(plane, corners, 4), torch.ones(()))
    torch.testing.assert_close(aggregate.mean(), plane)


def test_aggregating_gathered_patches_gives_the_plane_back() -> None:
    plane = torch.rand(17, 13, dtype=torch.float64)
    aggregate = Aggregate(plane, 5)
    for corners, _ in match(plane, 5, step=4, radius=3, count=4):
        weights = torch.rand(*corners.shape, 1, dtype=torch.float64) + 0.1
        aggregate.add(corners, gather(plane, corners, 5), weights)
    torch.testing.assert_close(aggregate.mean(), plane)
