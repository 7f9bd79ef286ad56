"""The error bars of a file: a floating-point image beside the result, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from normeq._support.atomic import replace_folder, replacing, sync_tree
from normeq.denoising.bands import Walk
from normeq.denoising.error_bars import ErrorBars
from normeq.denoising.local_runner import watched
from normeq.denoising.progress import Shares
from normeq.errors import writing
from normeq.images import Band, ImageFile, is_store
from normeq.images.float_copies import float_copy, write_float_copy


@dataclass(frozen=True)
class StdFile:
    """Error bars that are going to be written.

    Attributes
    ----------
    walk, source
        How the image is denoised, and the file that it comes from.
    target
        Where the error bars go.
    bars
        How they are estimated.
    """

    walk: Walk
    source: ImageFile
    target: Path
    bars: ErrorBars

    def __post_init__(self) -> None:
        float_copy(self.source, self.walk.dtype)  # which refuses what cannot be written

    @property
    def runs(self) -> int:
        """How much more time than denoising it takes."""
        return self.bars.runs

    def write(self, shares: Shares) -> None:
        """Write the file band by band, and report each share of it that is finished."""
        walk = self.bars.instead_of(self.walk)
        header = float_copy(self.source, walk.dtype)
        bands = watched(self._physical(walk.bands()), self.source, shares)
        if not is_store(self.target):
            with replacing(self.target) as temporary:
                write_float_copy(header, temporary, self.target, bands)
            return
        partial = self.target.with_name(f".{self.target.name}.partial")
        with writing(self.target):
            shutil.rmtree(partial, ignore_errors=True)
            write_float_copy(header, partial, self.target, bands)
            sync_tree(partial)
            replace_folder(partial, self.target)

    def _physical(self, bands: Iterator[Band]) -> Iterator[Band]:
        """Turn stored units into those of the image."""
        for band in bands:
            yield Band(band.frame, band.start, band.pixels * abs(self.source.gain))
