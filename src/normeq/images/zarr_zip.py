"""Zarr in one file (.zarr.zip): unpacked into a temporary folder, and packed again."""

from __future__ import annotations

import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Iterable
from pathlib import Path

from normeq.errors import InputError, reading
from normeq.images.formats import is_zarr
from normeq.images.source import Band
from normeq.images.zarr_safety import check_entry
from normeq.images.zarr_store import ZarrSource

# Of the room for temporary files, an unpacked store may take this share.
_SHARE = 0.5
_MOST_FILES = 10**6


class ZippedZarrSource(ZarrSource):
    """A Zarr array or OME-Zarr image in a zip file."""

    format = "Zarr"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        folder = tempfile.mkdtemp(prefix="normeq-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with reading(path, "zipped Zarr"):
            _unpack(path, Path(folder))
            store = Path(folder)
            inner = list(store.iterdir())
            if not is_zarr(store) and len(inner) == 1:  # the whole folder was packed
                store = inner[0]
            super().__init__(store, axes)
        self._store = store
        self.path = path

    def write(self, target: Path, bands: Iterable[Band]) -> None:
        """Write a zip with the copy of the store, uncompressed: its chunks are compressed."""
        self.path, path = self._store, self.path
        try:
            with tempfile.TemporaryDirectory(prefix="normeq-") as name:
                folder = Path(name, "copy")
                super().write(folder, bands)
                with zipfile.ZipFile(target, "w") as archive:
                    for file in sorted(folder.rglob("*")):
                        if file.is_file():
                            archive.write(file, file.relative_to(folder))
        finally:
            self.path = path


def _unpack(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > _SHARE * shutil.disk_usage(folder).free or len(members) > _MOST_FILES:
            raise InputError(
                f"{path} unpacks to {len(members)} files of {size / 2**30:.1f} GB in all, "
                "more than the temporary folder has room for; unpack it elsewhere."
            )
        for member in members:
            check_entry(Path(archive.extract(member, folder)))  # names that lead out are changed
