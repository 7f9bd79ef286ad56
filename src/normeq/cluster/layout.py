"""How an image is cut into tasks: whole files of the copy, of one plane or of several.

No two tasks write the same file, and what a task holds does not grow with the image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# Pixels that a task denoises, about: some seconds of work, and no more than that is lost.
_TASK_PIXELS = 2**22
# The same, for frames whose chunks have to be read together.
_MOST_PIXELS = 2**24


class Rectangle(NamedTuple):
    """One rectangle of several frames: what a task denoises."""

    frames: range
    rows: slice
    columns: slice

    @property
    def place(self) -> tuple[int, int, int]:
        """What stands for it in the journal."""
        return self.frames.start, self.rows.start, self.columns.start


@dataclass(frozen=True)
class Layout:
    """How many frames, rows and columns a task has.

    Attributes
    ----------
    frames, height, width
        Of the image.
    depth, tall, wide
        Of a task.
    """

    frames: int
    height: int
    width: int
    depth: int
    tall: int
    wide: int

    def groups(self) -> Iterator[range]:
        """Yield the frames that tasks share."""
        for first in range(0, self.frames, self.depth):
            yield range(first, min(first + self.depth, self.frames))

    def rectangles(self, frames: range) -> list[Rectangle]:
        """Return the tasks of some frames that share them."""
        return [
            Rectangle(
                frames,
                slice(top, min(top + self.tall, self.height)),
                slice(left, min(left + self.wide, self.width)),
            )
            for top in range(0, self.height, self.tall)
            for left in range(0, self.width, self.wide)
        ]

    @property
    def tasks(self) -> int:
        """How many tasks there are; planes that are divided are measured first."""
        down, across = -(-self.height // self.tall), -(-self.width // self.wide)
        groups = -(-self.frames // self.depth)
        return groups * down * across * (1 if self.undivided else 2)

    @property
    def undivided(self) -> bool:
        """Whether a task has whole planes."""
        return self.tall >= self.height and self.wide >= self.width


def cut(
    size: tuple[int, int, int],
    stored_together: tuple[int, int],
    frames_together: int = 1,
    *,
    whole_planes: bool = False,
) -> Layout:
    """Cut an image into tasks.

    Examples
    --------
    >>> layout = cut((100, 4096, 4096), (512, 512))
    >>> layout.depth, layout.tall, layout.wide
    (1, 2048, 2048)
    >>> layout = cut((100, 512, 512), (256, 256))
    >>> layout.depth, layout.tall, layout.wide
    (16, 512, 512)

    Parameters
    ----------
    size
        Frames, rows and columns of the image.
    stored_together
        Rows and columns of a file of the copy.
    frames_together
        How many consecutive frames share chunks of the image.
    whole_planes
        Whether the denoiser has to see whole planes.
    """
    frames, height, width = size
    rows, columns = stored_together
    if whole_planes or height * width <= _TASK_PIXELS:
        tall, wide = height, width
    else:
        wide = min(width, max(1, math.isqrt(_TASK_PIXELS) // columns) * columns)
        tall = min(height, max(1, _TASK_PIXELS // (wide * rows)) * rows)
    area = tall * wide
    depth = max(1, _TASK_PIXELS // area, min(frames_together, _MOST_PIXELS // area))
    if depth > frames_together:
        depth -= depth % frames_together
    return Layout(frames, height, width, min(depth, frames), tall, wide)
