"""What a run has finished of a folder, so that after a kill it goes on where it stopped."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from normeq.images.source import Band

_NAME = ".normeq-finished"
_LINE = re.compile("([0-9]{1,12}) ([0-9]{1,12}) done")


class Journal:
    """The bands that an unfinished folder already holds, if they were made for the same key.

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
        self.done: set[tuple[int, int]] = set()
        text = self._file.read_text("ascii", "replace") if self._file.exists() else ""
        lines = text.splitlines()
        if lines[:1] == [key]:
            # A line that was cut off by a kill, or damaged, does not count.
            places = (_LINE.fullmatch(line) for line in lines[1:])
            self.done = {(int(place[1]), int(place[2])) for place in places if place}
        elif folder.exists():
            shutil.rmtree(folder)

    def recorded(self, bands: Iterator[Band]) -> Iterator[Band]:
        """Pass bands on to a writer, and record each when the writer asks for the next."""
        # Created on the first demand for pixels: the writer has written the metadata by then.
        with self._file.open("a") as file:
            if not self.done:
                file.write(self._key + "\n")
                file.flush()
            for band in bands:
                yield band
                # The last word tells a line that was cut off by a kill from a whole one.
                file.write(f"{band.frame} {band.start} done\n")
                file.flush()

    def close(self) -> None:
        """Forget the record: the folder is finished."""
        self._file.unlink(missing_ok=True)
