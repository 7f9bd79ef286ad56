"""MRC, the format of electron microscopy: stacks (.mrcs), volumes and maps."""

from __future__ import annotations

from pathlib import Path

import mrcfile

from normeq.errors import reading
from normeq.images.mapped import MappedFile

_HEADER, _MOST_LABELS = 1024, 10


class MrcSource(MappedFile):
    """An MRC file; its header and extended header are kept, its statistics renewed."""

    format = "MRC"

    def __init__(self, path: Path, axes: str | None = None) -> None:
        with reading(path, self.format), mrcfile.mmap(path) as file:
            shape = tuple(int(length) for length in file.data.shape)
            super().__init__(
                path,
                shape,
                file.data.dtype,
                _HEADER + int(file.header.nsymbt),
                axes or "QZYX"[-len(shape) :],
            )

    def finish(self, target: Path) -> None:
        """Renew minimum, maximum, mean and deviation in the header, and add a label."""
        with mrcfile.mmap(target, mode="r+") as file:
            file.update_header_stats()
            if self.provenance is not None and file.header.nlabl < _MOST_LABELS:
                file.add_label(self.provenance.as_line())
