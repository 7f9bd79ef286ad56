"""Writing under a temporary name, so that a killed run leaves nothing under the final one."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from normeq._support.locking import lock_handle
from normeq.errors import writing

_PIECE = 2**20


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path`; on success it is synced to disk and takes its name.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['note.txt']
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with writing(path):
        _remove_abandoned(path)
        try:
            # Not tempfile: its files are private to the user, and the result would be too.
            # Inside `try`, for a signal may come as soon as the file exists.
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            try:
                lock_handle(handle)
                yield temporary
                os.fsync(handle)
            finally:
                os.close(handle)  # Windows renames no open file
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


def _remove_abandoned(path: Path) -> None:
    """Remove what killed runs have left of `path`: temporary files that nobody holds locked."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        if not left.is_file():
            continue
        with suppress(OSError):  # somebody else's, or gone by now
            handle = os.open(left, os.O_RDONLY)
            try:
                if lock_handle(handle):
                    left.unlink()
            finally:
                os.close(handle)


def reserve(path: Path) -> None:
    """Take up the room on the disk that a file is going to need, all of its length.

    A file that is mapped into memory may have holes. If the disk is full when they are written to,
    the system ends the process; here it is an `OSError`.
    """
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)
        else:  # rewritten piece by piece, which fills holes too
            for place in range(0, size, _PIECE):
                file.seek(place)
                data = file.read(_PIECE)
                file.seek(place)
                file.write(data)


def sync_tree(folder: Path) -> None:
    """Wait until a folder and everything in it is on the disk."""
    for inner, _, files in os.walk(folder, topdown=False):
        for file in files:
            sync(Path(inner, file))
        sync(Path(inner))


def replace_folder(temporary: Path, path: Path) -> None:
    """Let a finished folder, synced already, take the name `path` in place of one that has it."""
    with writing(path):
        if path.exists():
            old = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
            os.replace(path, old)
            try:
                os.replace(temporary, path)
            except OSError:
                os.replace(old, path)
                raise
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        else:
            os.replace(temporary, path)
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    if path.is_dir() and os.name != "posix":
        return  # only POSIX lets a folder be opened
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
