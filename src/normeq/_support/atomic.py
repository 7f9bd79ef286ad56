"""Writing under a temporary name, so that a killed run leaves nothing under the final one."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from normeq.errors import writing


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
        # Not tempfile: its files are private to the user, and the result would be too.
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            try:
                _lock(handle)
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
                if _lock(handle):
                    left.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file for as long as it is open; tell whether that worked."""
    try:
        import fcntl
    except ImportError:  # not POSIX: nothing is locked, and nothing counts as abandoned
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
