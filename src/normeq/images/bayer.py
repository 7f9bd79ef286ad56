"""Bayer mosaics: a camera's raw image, seen as the four planes that are interleaved in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import numpy as np

from normeq.errors import InputError
from normeq.images.source import Band, ImageSource, Pixels

#: The colours of the first two rows and columns of a mosaic; "none": the image is not one.
Bayer = Literal["RGGB", "BGGR", "GRBG", "GBRG", "none"]
BAYER: tuple[Bayer, ...] = get_args(Bayer)

#: Rows and columns at which each of the four planes starts.
PHASES = ((0, 0), (0, 1), (1, 0), (1, 1))


class BayerSource(ImageSource):
    """The four planes of each mosaic, one after the other, as frames of half the size.

    Parameters
    ----------
    mosaic
        An image of one sample per pixel, with an even number of rows and columns.
    """

    def __init__(self, mosaic: ImageSource) -> None:
        if mosaic.height % 2 or mosaic.width % 2 or mosaic.samples != 1:
            raise InputError(
                f"shape {mosaic.shape} is not that of a Bayer mosaic, which has one sample per "
                "pixel and an even number of rows and columns."
            )
        shape = (mosaic.frames, len(PHASES), mosaic.height // 2, mosaic.width // 2)
        # The planes of one colour share a noise model: that of a channel.
        super().__init__(
            shape,
            mosaic.dtype,
            "QCYX",
            gain=mosaic.gain,
            offset=mosaic.offset,
            blank=mosaic.blank,
        )
        self._mosaic = mosaic

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of one plane."""
        return self.read_region(frame, slice(start, stop), slice(0, self.width))

    def read_region(self, frame: int, rows: slice, columns: slice) -> Pixels:
        """Return some rows and columns of one plane."""
        mosaic, phase = divmod(frame, len(PHASES))
        row, column = PHASES[phase]
        down, right = (slice(2 * side.start, 2 * side.stop) for side in (rows, columns))
        return self._mosaic.read_region(mosaic, down, right)[row::2, column::2]


def interleaved(bands: Iterable[Band], source: BayerSource) -> Iterator[Band]:
    """Put denoised planes together again: one band for each whole mosaic.

    Examples
    --------
    >>> from normeq.images.array import ArraySource
    >>> mosaic = np.arange(16.0).reshape(4, 4)
    >>> source = BayerSource(ArraySource(mosaic, "YX"))
    >>> bands = [Band(frame, 0, source.read(frame, 0, 2)) for frame in range(4)]
    >>> [whole] = interleaved(bands, source)
    >>> bool((whole.pixels[..., 0] == mosaic).all())
    True
    """
    whole: Pixels | None = None
    left = 0
    for band in bands:
        mosaic, phase = divmod(band.frame, len(PHASES))
        if whole is None:
            whole = np.empty((2 * source.height, 2 * source.width, 1), band.pixels.dtype)
            left = whole.size
        row, column = PHASES[phase]
        rows = slice(2 * band.start + row, 2 * (band.start + len(band.pixels)), 2)
        whole[rows, column::2] = band.pixels
        left -= band.pixels.size
        if left == 0:
            yield Band(mosaic, 0, whole)
            whole = None
