"""An image from standard input, and its result to standard output."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from normeq.errors import UsageError

if TYPE_CHECKING:
    from normeq.denoising.outcome import Outcome

# How the formats begin that can come through a pipe.
_BEGINNINGS = {b"\x93NUMPY": ".npy", b"\x89PNG\r\n\x1a\n": ".png"}


@contextmanager
def standard_streams() -> Iterator[tuple[Path, Path]]:
    """Give a file with the content of standard input, and the path of one to be written.

    The file that is at that path in the end is copied to standard output.
    """
    stream = sys.stdin.buffer
    beginning = stream.read(max(map(len, _BEGINNINGS)))
    extension = next((end for start, end in _BEGINNINGS.items() if beginning.startswith(start)), "")
    if not extension:
        raise UsageError("standard input is neither NPY nor PNG: only these formats can be piped.")
    with tempfile.TemporaryDirectory(prefix="normeq-") as folder:
        source, target = Path(folder, f"stdin{extension}"), Path(folder, f"stdout{extension}")
        with source.open("wb") as file:
            file.write(beginning)
            shutil.copyfileobj(stream, file)
        yield source, target
        if target.exists():
            with target.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def named_as_streams(outcome: Outcome) -> Outcome:
    """Let an outcome speak of the streams instead of the files that hold them."""
    if outcome.error:
        outcome.error = outcome.error.replace(outcome.input, "standard input")
    outcome.input, outcome.output = "standard input", "standard output"
    return outcome
