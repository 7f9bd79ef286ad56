"""How an image is cut into tiles: which pixels a tile answers for, and which ones it has to see.

A network with a receptive field of `halo` pixels to each side and a stride of `stride` gives on a
tile what it gives on the whole image, if the tile is read with that halo and starts on a
multiple of the stride. At the border of the image a tile stops where the image stops, so that
the network pads it as it pads the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from normeq.denoising.denoiser import Denoiser
from normeq.errors import UsageError
from normeq.images.source import ImageSource

#: Side of the smallest tile worth its halo.
SMALLEST_TILE = 64
# Memory for a band of the image, as stored.
_BAND_BYTES = 2**28


@dataclass(frozen=True)
class Span:
    """An interval of one axis: ``[start, stop)`` is kept out of ``[read_start, read_stop)``.

    Examples
    --------
    >>> span = Span(8, 16, 4, 20)
    >>> span.kept, span.read, span.crop
    (slice(8, 16, None), slice(4, 20, None), slice(4, 12, None))
    """

    start: int
    stop: int
    read_start: int
    read_stop: int

    @property
    def kept(self) -> slice:
        """Where the result goes in the image."""
        return slice(self.start, self.stop)

    @property
    def read(self) -> slice:
        """What has to be read from the image."""
        return slice(self.read_start, self.read_stop)

    @property
    def crop(self) -> slice:
        """Where the result lies in what was read."""
        return slice(self.start - self.read_start, self.stop - self.read_start)


@dataclass(frozen=True)
class Tile:
    """A rectangle of an image: a span of rows and a span of columns."""

    rows: Span
    columns: Span

    @property
    def kept(self) -> tuple[slice, slice]:
        """Where the result goes in the image."""
        return self.rows.kept, self.columns.kept

    @property
    def crop(self) -> tuple[slice, slice]:
        """Where the result lies in what was read."""
        return self.rows.crop, self.columns.crop

    def within(self, rows: Span, columns: Span) -> tuple[slice, slice]:
        """Return where what smaller spans read lies in what this tile reads."""
        down, right = self.rows.read_start, self.columns.read_start
        return (
            slice(rows.read_start - down, rows.read_stop - down),
            slice(columns.read_start - right, columns.read_stop - right),
        )


def align_up(length: int, stride: int) -> int:
    """Return the smallest multiple of `stride` that is not below `length`."""
    return -(-length // stride) * stride


def spans(length: int, tile: int, halo: int = 0, stride: int = 1) -> list[Span]:
    """Cut an axis into spans that cover it once, read with a halo from a multiple of the stride.

    Examples
    --------
    >>> [(s.start, s.stop, s.read_start, s.read_stop) for s in spans(9, 4, halo=1, stride=2)]
    [(0, 4, 0, 6), (4, 8, 2, 9), (8, 9, 6, 9)]
    """
    if length < 1 or tile < 1 or halo < 0 or stride < 1:
        raise UsageError(
            f"cannot cut {length} pixels into tiles of {tile} (halo {halo}, stride {stride}): "
            "length, tile and stride start at 1, the halo at 0."
        )
    return [
        reach(start, min(start + tile, length), length, halo, stride)
        for start in range(0, length, tile)
    ]


def reach(start: int, stop: int, length: int, halo: int, stride: int) -> Span:
    """Return the span of an axis that keeps ``[start, stop)`` and reads what that depends on."""
    return Span(
        start,
        stop,
        max(0, start - halo) // stride * stride,
        min(align_up(stop + halo, stride), length),
    )


def widened(span: Span, margin: int, length: int) -> Span:
    """Return a span that reads `margin` pixels more to each side, where the axis has them."""
    return Span(
        span.start,
        span.stop,
        max(0, span.read_start - margin),
        min(length, span.read_stop + margin),
    )


@dataclass(frozen=True)
class Plan:
    """How an image is cut: tiles, rows in a band, frames read together, tiles run together."""

    tile: tuple[int, int]
    rows: int
    frames: int = 1
    batch: int = 1


def plan_tiles(denoiser: Denoiser, source: ImageSource, tile: int | None = None) -> Plan:
    """Choose tiles for an image: the whole plane if memory allows it.

    Parameters
    ----------
    denoiser
        Its halo and stride, and the memory it takes, decide.
    source
        The image.
    tile
        Side of the tiles in pixels; None lets memory decide.
    """
    whole, halo = (source.height, source.width), denoiser.halo
    limit = denoiser.pixels_at_once()
    if halo is None or limit is None:
        return Plan(whole, source.height)  # it sees whole planes
    if tile is not None:
        chosen = (min(tile, source.height), min(tile, source.width))
    elif _computed(whole, denoiser.stride) <= limit:
        chosen = whole
    else:
        chosen = _largest_tile(source.width, limit, halo, denoiser.stride)
    row_bytes = source.width * source.samples * source.dtype.itemsize
    rows = source.band_rows or min(chosen[0], max(denoiser.stride, _BAND_BYTES // row_bytes))
    seen = (min(chosen[0], source.height) + 2 * halo, min(chosen[1], source.width) + 2 * halo)
    # A quarter of what fits is the fastest (measured), and leaves room for the rest.
    batch = max(1, limit // 4 // _computed(seen, denoiser.stride))
    undivided = rows >= source.height and chosen == whole
    return Plan(chosen, rows, max(1, batch // source.samples) if undivided else 1, batch)


def tiles_of(
    rows: slice, columns: slice, plan: Plan, denoiser: Denoiser, source: ImageSource
) -> Iterator[Tile]:
    """Cut a rectangle of an image into tiles, each with what the denoiser has to see around it."""
    halo, stride = denoiser.halo or 0, denoiser.stride
    tall, wide = plan.tile
    for top in range(rows.start, rows.stop, tall):
        down = reach(top, min(top + tall, rows.stop), source.height, halo, stride)
        for left in range(columns.start, columns.stop, wide):
            right = min(left + wide, columns.stop)
            yield Tile(down, reach(left, right, source.width, halo, stride))


def _computed(size: tuple[int, int], stride: int) -> int:
    """Return how many pixels a network computes on: it pads each side to a multiple of its stride.

    >>> _computed((1, 1000), 8)
    8000
    """
    return align_up(size[0], stride) * align_up(size[1], stride)


def _largest_tile(width: int, limit: int, halo: int, stride: int) -> tuple[int, int]:
    """Return a tile whose halo costs little and whose activations stay near the processor.

    Half the side that memory allows is the fastest (measured), if that is not all halo.
    """
    most = math.isqrt(limit)
    seen = min(most, max(most // 2, 6 * halo))
    side = max(SMALLEST_TILE, seen - 2 * halo) // stride * stride
    if width <= side:  # no halo to the left and right: more rows fit
        return max(side, seen**2 // align_up(width, stride) - 2 * halo), width
    return side, side
