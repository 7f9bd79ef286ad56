"""Files compressed with gzip: unpacked into a temporary file, and packed again."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from normeq._support.atomic import replacing
from normeq.errors import InputError

_PIECE = 2**20
# Of the room for temporary files, an unpacked file may take this share.
_SHARE = 0.5


def temporary_file(owner: object, suffix: str) -> Path:
    """Make an empty file that vanishes with its owner."""
    handle, name = tempfile.mkstemp(prefix="normeq-", suffix=suffix)
    os.close(handle)
    weakref.finalize(owner, Path.unlink, Path(name), missing_ok=True)
    return Path(name)


def unpacked(path: Path, owner: object) -> Path:
    """Return a file with the content of `path`; if it is a ``.gz``, it vanishes with its owner."""
    if path.suffix.lower() != ".gz":
        return path
    plain = temporary_file(owner, Path(path.stem).suffix)
    limit = int(_SHARE * shutil.disk_usage(plain).free)
    with gzip.open(path) as packed, plain.open("wb") as file:
        while data := packed.read(_PIECE):
            if file.tell() + len(data) > limit:
                raise InputError(
                    f"{path} unpacks to more than {limit / 2**30:.1f} GB, more than the "
                    "temporary folder has room for; unpack it elsewhere."
                )
            file.write(data)
    return plain


def pack(path: Path) -> None:
    """Compress a file in its place."""
    with (
        replacing(path) as temporary,
        path.open("rb") as plain,
        temporary.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,  # the same bytes every time
    ):
        shutil.copyfileobj(plain, packed, _PIECE)
