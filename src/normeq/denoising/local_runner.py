"""Who denoises an image and fills a folder with it: this process, unless a cluster does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from normeq.denoising.bands import Walk
from normeq.denoising.journal import Journal
from normeq.denoising.progress import Shares
from normeq.images import Band, ImageFile
from normeq.images.converting import Writer


class Runner:
    """Denoises an image in this process, band by band."""

    def check(self, source: ImageFile, target: Path, walk: Walk) -> None:
        """Refuse what cannot be denoised here."""
        return

    def digest(self, source: ImageFile) -> str:
        """Return SHA-256 of a file or folder."""
        return source.digest()

    def layout(self, source: ImageFile, walk: Walk) -> tuple[int, ...]:
        """Return the numbers that the places of the journal depend on."""
        return (walk.plan.rows,)

    def fill(
        self,
        target: Path,
        source: ImageFile,
        walk: Walk,
        writer: Writer,
        journal: Journal,
        shares: Shares,
    ) -> None:
        """Write a folder, except for what the journal says is in it.

        Parameters
        ----------
        target
            The folder, which may be unfinished.
        source, walk
            The image, and how it is denoised.
        writer
            Writes the bands of an image to a folder.
        journal
            Told each part that is finished.
        shares
            Told each share of the image that is finished.
        """
        for _, start in journal.done:
            rows = max(0, min(walk.plan.rows, source.height - start))
            shares.add(rows * source.width * source.samples / source.pixels)
        bands = watched(walk.bands(journal.done), source, shares)
        writer(source, target, journal.recorded(bands))


def watched(bands: Iterator[Band], source: ImageFile, shares: Shares) -> Iterator[Band]:
    """Pass bands on, and add each to the shares when the next is asked for."""
    total = sum(part.pixels for part in source.parts)
    for band in bands:
        yield band
        shares.add(band.pixels.size / total)
