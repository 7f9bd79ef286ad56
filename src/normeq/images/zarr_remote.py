"""Zarr stores at an address, read chunk by chunk through fsspec; results are written here."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from normeq.errors import InputError
from normeq.images.formats import ZARR_MARKERS
from normeq.images.zarr_store import ZarrSource

log = logging.getLogger(__name__)


class RemoteZarrSource(ZarrSource):
    """A Zarr array or OME-Zarr image at an address."""

    def _opened(self, path: Path) -> Any:
        try:
            from zarr.storage import FsspecStore

            self._store: Any = FsspecStore.from_url(str(path), read_only=True)
        except ImportError as error:
            raise InputError(
                f"{path}: stores at an address need more packages: pip install "
                f"'normeq[remote]' ({error})."
            ) from error
        return self._store

    def _copy_description(self, target: Path) -> None:
        """Copy what describes the image; an address cannot always say what else is there."""
        log.warning("%s: labels and other arrays beside the image are not copied", self.path)
        for level in ["", *self._levels]:
            for name in (*ZARR_MARKERS, ".zattrs"):
                key = f"{level}/{name}".lstrip("/")
                content = sync(self._store.get(key, default_buffer_prototype()))
                if content is not None:
                    (target / level).mkdir(parents=True, exist_ok=True)
                    (target / key).write_bytes(content.to_bytes())

    def digest(self) -> str:
        """Return nothing: the store is not read twice."""
        return ""

    def fingerprint(self) -> object:
        """Return something new each time: whether the store has changed is not known."""
        return secrets.token_hex()
