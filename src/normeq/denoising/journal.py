"""What a run has finished of a folder, so that a killed run continues where it stopped."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from normeq.images.source import Band

_NAME = ".normeq-finished"
_LINE = re.compile("([0-9]{1,12}(?: [0-9]{1,12})*) done")


class Journal:
    """The places that an unfinished folder already holds, if they were made for the same key.

    A place is a band's frame and first row, or whatever numbers name a part of the work.

    Parameters
    ----------
    folder
        The unfinished output; emptied if it was made for another key.
    key
        Stands for the input, the model and the options.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._file = folder / _NAME
        self._key = key
        self.done: set[tuple[int, ...]] = set()
        text = self._file.read_text("ascii", "replace") if self._file.exists() else ""
        lines = text.splitlines()
        if lines[:1] == [key]:
            # A line that was cut off by a kill, or damaged, does not count.
            places = (_LINE.fullmatch(line) for line in lines[1:])
            self.done = {tuple(map(int, place[1].split())) for place in places if place}
        elif folder.exists():
            shutil.rmtree(folder)

    def start(self) -> None:
        """Begin to record; the folder's metadata has to be written by then."""
        self._append(f"\n{self._key}\n" if self.done else f"{self._key}\n")

    def record(self, *place: int) -> None:
        """Note that a part of the work is done."""
        self._append(f"{' '.join(map(str, place))} done\n")

    def _append(self, text: str) -> None:
        with self._file.open("a") as file:
            file.write(text)

    def recorded(self, bands: Iterator[Band]) -> Iterator[Band]:
        """Pass bands on to a writer, and record each when the writer asks for the next."""
        self.start()  # on the first demand for pixels
        for band in bands:
            yield band
            self.record(band.frame, band.start)

    def close(self) -> None:
        """Forget the record: the folder is finished."""
        self._file.unlink(missing_ok=True)
