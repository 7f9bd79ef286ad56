"""Writing under a temporary name, so that a killed run leaves nothing under the final one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normeq.images.source import writing


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
        # Not tempfile: its files are private to the user, and the result would be too.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            yield temporary
            sync(temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


def replace_folder(temporary: Path, path: Path) -> None:
    """Let a finished folder take the name `path`, in place of a folder that has it."""
    with writing(path):
        for folder, _, files in os.walk(temporary, topdown=False):
            for file in files:
                sync(Path(folder, file))
            sync(Path(folder))
        if path.exists():
            old = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
            os.replace(path, old)
            os.replace(temporary, path)
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
