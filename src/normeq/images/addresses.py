"""Addresses (``https://...``, ``s3://...``), which take the place of a path where one is named."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from normeq.errors import UsageError

# Two letters or more, which a drive of Windows does not have; Path leaves one of two slashes.
_SCHEME = re.compile(r"^[a-z][a-z0-9+-]+(::[a-z][a-z0-9+-]+)*:/")

_Path: Any = type(Path())


class Address(_Path):  # type: ignore[misc]
    """An address that can be handled like a path; only its text differs.

    >>> str(Address("https://example.org/data/a.zarr"))
    'https://example.org/data/a.zarr'
    """

    def __str__(self) -> str:
        scheme, *rest = self.parts
        return f"{scheme}//{'/'.join(rest)}"


def is_address(path: str | os.PathLike[str]) -> bool:
    """Tell an address from a path.

    >>> is_address("s3://bucket/a.zarr"), is_address("C:/a.zarr"), is_address("a.h5:/raw")
    (True, False, False)
    """
    return bool(_SCHEME.match(os.fspath(path))) and not os.path.lexists(path)


def located(path: str | os.PathLike[str]) -> Path:
    """Return a path, or an address if that is what is named."""
    if not is_address(path):
        return Path(path)
    text = os.fspath(path)
    if "?" in text or "@" in text:
        raise UsageError(
            "an address must not contain a password or a query: keep them in the configuration "
            "of fsspec."
        )
    if text.startswith("file:"):
        raise UsageError(f"{text} is on this machine: write the path without file://.")
    address: Path = Address(text)
    return address
