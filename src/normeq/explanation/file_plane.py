"""A plane of an image file as something to slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.images.source import ImageSource

Floats = NDArray[np.float64]


class FilePlane:
    """A plane of an opened image file, sliced like an array: only rows that are asked for are read.

    Parameters
    ----------
    source
        The opened image.
    frame
        Number of the frame.
    samples
        The interleaved channels: one, for ``(H, W)``, or several, for ``(C, H, W)``.
    value_range
        Values that become 0 and 1; without it the image keeps its units.
    """

    def __init__(
        self,
        source: ImageSource,
        frame: int,
        samples: Sequence[int],
        value_range: tuple[float, float] | None = None,
    ) -> None:
        self._source = source
        self._frame = frame
        self._samples = list(samples)
        self._range = value_range
        channels = (len(samples),) if len(samples) > 1 else ()
        self.shape = (*channels, source.height, source.width)

    def __getitem__(self, key: tuple[Any, slice, slice]) -> Floats:
        _, rows, columns = key
        band = self._source.read(self._frame, rows.start, rows.stop)[:, columns]
        values = np.moveaxis(self._source.physical(band)[..., self._samples], -1, 0)
        if self._range is not None:
            low, high = self._range
            values = (values - low) / (high - low)
        return values if len(self._samples) > 1 else values[0]
