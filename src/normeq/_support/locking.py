"""A lock for an output, so that two processes never write the same one."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normeq.errors import BusyError, writing


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of an output; `BusyError` names the owner if another process holds it.

    The lock is a hidden file beside the output, which names its owner. The system releases it when
    the owner ends, however that happens, so that the file of a killed run does not stop the next.

    Examples
    --------
    >>> import tempfile
    >>> output = Path(tempfile.mkdtemp(), "a.tif")
    >>> with locked(output), locked(output):
    ...     pass
    Traceback (most recent call last):
    ...
    normeq.errors.BusyError: ...a.tif is being written by process ...
    """
    file = path.with_name(f".{path.name}.lock")
    with writing(path):
        handle = _acquire(path, file)
    try:
        yield
    finally:
        _release(handle, file)


def _acquire(path: Path, file: Path) -> int:
    while True:
        handle = os.open(file, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            if not lock_handle(handle):
                raise BusyError(
                    f"{path} is being written by {_owner(file)}; wait until it has finished."
                )
            if _is_current(handle, file):
                os.ftruncate(handle, 0)
                os.write(handle, _description().encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its owner has removed it meanwhile: there may be a new one


def _release(handle: int, file: Path) -> None:
    if os.name == "posix":
        file.unlink(missing_ok=True)  # while it is ours: nobody else's is removed
        os.close(handle)
    else:  # Windows removes no open file
        os.close(handle)
        file.unlink(missing_ok=True)


def lock_handle(handle: int) -> bool:
    """Lock an open file for as long as it is open; return False if another process has it.

    Where the file system has no locks, nobody has it.
    """
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _lock_on_windows(handle)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return True


def _lock_on_windows(handle: int) -> None:
    import msvcrt

    os.lseek(handle, 2**30, os.SEEK_SET)  # a byte beyond the text, which others may then read
    msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    os.lseek(handle, 0, os.SEEK_SET)


def _is_current(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False


def _description() -> str:
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()}, since {started}"


def _owner(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        text = ""
    return text if text.isprintable() and text else "another process"
