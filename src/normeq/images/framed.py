"""Formats that a library reads frame by frame, and that are not written: results are OME-TIFF."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from normeq.errors import UsageError, reading
from normeq.images.source import Band, ImageFile, Pixels
from normeq.images.tiff.ome_writer import ome_axes, write_ome


class FramedFile(ImageFile):
    """A file of which whole frames are decoded; the last one is kept."""

    _frame: tuple[int, Pixels] | None = None

    def __init__(self, *arguments: Any, **about: Any) -> None:
        super().__init__(*arguments, **about)
        ome_axes(self)  # which the result must have: said before any work

    @abstractmethod
    def decode(self, frame: int) -> Pixels:
        """Return a frame, of shape ``(height, width)``, with samples last if there are several."""

    def read(self, frame: int, start: int, stop: int) -> Pixels:
        """Return rows of a frame."""
        if self._frame is None or self._frame[0] != frame:
            with reading(self.path, self.format):
                pixels = np.asarray(self.decode(frame), self.dtype)
                self._frame = frame, pixels.reshape(self.height, self.width, self.samples)
        return self._frame[1][start:stop]

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write an OME-TIFF."""
        write_ome(self, target, bands)

    def close(self) -> None:
        """Drop the decoded frame."""
        self._frame = None


def chosen(path: Path, names: Mapping[str, Any], part: str | None) -> Any:
    """Return the only image of a file, or the one that is named, by name or number."""
    if part is None and len(names) == 1:
        return next(iter(names.values()))
    if part is not None and part in names:
        return names[part]
    if part is not None and part.isdecimal() and int(part) < len(names):
        return list(names.values())[int(part)]
    known = ", ".join(list(names)[:8])
    if part is not None:
        raise UsageError(f"{path}: {part!r} is not one of its images, which are {known}.")
    first = next(iter(names), "NAME")
    raise UsageError(
        f"{path} contains {len(names)} images, {known}; name one of them: {path}:{first}."
    )
