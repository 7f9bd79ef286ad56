"""How a result was made, noted in the result itself, so that it can be told from the raw file."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_PIECE = 2**20


@dataclass(frozen=True)
class Provenance:
    """What a result was made with, and from what.

    Attributes
    ----------
    program
        Name and version.
    model, model_digest
        Name of the denoiser, with the version of shipped weights, and a digest that is equal for
        equal results.
    input, input_digest
        Name of the file, and SHA-256 of its content.
    parameters
        Everything else that the result depends on, as plain data.
    """

    program: str
    model: str
    model_digest: str
    input: str
    input_digest: str
    parameters: Mapping[str, Any]

    def as_json(self) -> str:
        """Return all of it, in ASCII and on one line."""
        return json.dumps(asdict(self), default=str)

    def as_line(self) -> str:
        """Return the most important of it, in ASCII and in less than 80 characters.

        >>> Provenance("normeq 0.1.0", "default@1", "9f86d081884c7d65", "a.tif", "", {}).as_line()
        'denoised by normeq 0.1.0, model default@1 9f86d081884c'
        """
        model = self.model.encode("ascii", "replace").decode()[:24]
        return f"denoised by {self.program}, model {model} {self.model_digest[:12]}"

    @property
    def identity(self) -> uuid.UUID:
        """An identity for the result, the same for the same result."""
        return uuid.uuid5(uuid.NAMESPACE_URL, f"normeq:{self.as_json()}")


def file_digest(file: Path) -> str:
    """Return SHA-256 of a file."""
    total = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(_PIECE):
            total.update(piece)
    return total.hexdigest()


def digest(
    path: Path, of_files: Callable[[Sequence[Path]], Iterable[str]] = lambda f: map(file_digest, f)
) -> str:
    """Return SHA-256 of a file, or of the names and digests of a folder's files.

    Parameters
    ----------
    path
        The file or folder.
    of_files
        Returns the digests of files, in the same order.
    """
    if not path.is_dir():
        return file_digest(path)
    total = hashlib.sha256()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    for file, of_file in zip(files, of_files(files), strict=True):
        total.update(f"{file.relative_to(path).as_posix()}\0{of_file}\n".encode())
    return total.hexdigest()
