"""PGM and PPM: a short header and the pixels as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.mapped import MappedFile
from normeq.images.source import Band

# Magic number, width, height and largest value, apart by blanks and comments.
_GAP = rb"(?:\s|#[^\n]{0,1000}\n){1,100}?"
_HEADER = re.compile(
    rb"P([56])" + _GAP + rb"(\d{1,9})" + _GAP + rb"(\d{1,9})" + _GAP + rb"(\d{1,5})\s"
)
_HEADER_BYTES = 8192


class PnmSource(MappedFile):
    """A binary PGM or PPM file, of up to 16 bits."""

    format = "PNM"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), path.open("rb") as file:
            start = file.read(_HEADER_BYTES)
            if start[:2] in (b"P1", b"P2", b"P3", b"P4", b"P7"):
                raise InputError(f"{path} is a {start[:2].decode()} file; convert it to P5 or P6.")
            header = _HEADER.match(start)
            if header is None:
                raise ValueError("the file does not start like a PGM or PPM file")
            kind, width, height, self._white = (int(number) for number in header.groups())
            if not 0 < self._white < 2**16:
                raise ValueError(f"its largest value is {self._white}")
            shape: tuple[int, ...] = (height, width) if kind == 5 else (height, width, 3)
            super().__init__(
                path,
                shape,
                np.dtype("u1" if self._white < 256 else ">u2"),
                header.end(),
                same_axes(axes, "YX" if kind == 5 else "YXS"),
            )

    @property
    def unportable(self) -> Sequence[str]:
        """The largest value, where it is not that of the dtype."""
        usual = np.iinfo(self.dtype).max
        return () if self._white == usual else (f"that its largest value is {self._white}",)

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a file of the same kind; no pixel is above its largest value."""
        super().write(target, self._limited(bands))

    def _limited(self, bands: Iterable[Band]) -> Iterator[Band]:
        for band in bands:
            yield replace(band, pixels=np.minimum(band.pixels, self._white))
