"""Tasks cover an image once, in whole files, and stay small."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from normeq.cluster.layout import cut


@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 9000), st.integers(1, 9000)),
    stored=st.tuples(st.integers(1, 2048), st.integers(1, 2048)),
    together=st.integers(1, 64),
    whole=st.booleans(),
)
def test_tasks_cover_an_image_once_in_whole_files(
    size: tuple[int, int, int], stored: tuple[int, int], together: int, whole: bool
) -> None:
    layout = cut(size, stored, together, whole_planes=whole)
    parts = [part for frames in layout.groups() for part in layout.rectangles(frames)]
    frames, height, width = size
    starts = {(part.rows.start, part.columns.start) for part in parts}
    covered = np.zeros((frames, len({row for row, _ in starts}), len({c for _, c in starts})), int)
    for part in parts:
        assert part.rows.start % stored[0] == part.columns.start % stored[1] == 0
        assert part.rows.stop == height or part.rows.stop % stored[0] == 0
        assert part.columns.stop == width or part.columns.stop % stored[1] == 0
        row, column = part.rows.start // layout.tall, part.columns.start // layout.wide
        covered[part.frames.start : part.frames.stop, row, column] += 1
    assert (covered == 1).all()
    area = sum(
        (part.rows.stop - part.rows.start) * (part.columns.stop - part.columns.start)
        for part in layout.rectangles(next(layout.groups()))
    )
    assert area == height * width
    assert len({part.place for part in parts}) == len(parts)
    assert layout.tasks == len(parts) * (1 if layout.undivided else 2)
    if not whole:
        assert layout.tall * layout.wide <= max(2**22, stored[0] * stored[1])
        assert layout.depth * layout.tall * layout.wide <= max(2**24, stored[0] * stored[1])


def test_frames_that_share_chunks_are_read_together() -> None:
    assert cut((100, 1024, 1024), (256, 256), 16).depth == 16
    assert cut((100, 512, 512), (64, 64), 5).depth == 15  # of 16 that a task could have
