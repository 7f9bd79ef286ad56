"""MNIST and its relatives, from idx or npz files."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.errors import FileError, reading
from normeq.reproduce.workspace import Unavailable

#: The numbers of dimensions and the type that an idx file of images or labels begins with.
_MAGIC = {"images": b"\x00\x00\x08\x03", "labels": b"\x00\x00\x08\x01"}
_NAMES = {"images": "images-idx3-ubyte", "labels": "labels-idx1-ubyte"}
# Bytes of a file, unpacked, ten times what the largest set has.
_LARGEST_FILE = 2**29


@dataclass(frozen=True)
class LabelledImages:
    """Images of 8 bits, ``(N, H, W)``, and the label of each."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int) -> LabelledImages:
        """Return the first of them."""
        return LabelledImages(self.images[:count], self.labels[:count])


def read_digits(folder: Path, part: str) -> LabelledImages:
    """Read the training or the test images of a set.

    Parameters
    ----------
    folder
        With the idx files of the set, as published or gzipped, or an npz file with the part in
        its name, which holds `images` and `labels`.
    part
        ``"train"`` or ``"test"``.
    """
    stem = "train" if part == "train" else "t10k"
    idx = {kind: _idx_file(folder, f"{stem}-{name}") for kind, name in _NAMES.items()}
    if idx["images"] is not None and idx["labels"] is not None:
        images, labels = (_read_idx(path, kind) for kind, path in idx.items() if path)
    else:
        images, labels = _read_npz(folder, part)
    if images.ndim != 3 or len(images) != len(labels) or not len(labels):
        raise FileError(
            f"'{folder}' has {part} images of shape {images.shape} and {len(labels)} labels: "
            "there must be one label for each image."
        )
    return LabelledImages(images.astype(np.uint8), labels.astype(np.int64))


def _idx_file(folder: Path, name: str) -> Path | None:
    found = [folder / f"{name}{end}" for end in ("", ".gz") if (folder / f"{name}{end}").is_file()]
    return found[0] if found else None


def _read_idx(path: Path, kind: str) -> NDArray[Any]:
    with reading(path, "an idx file"):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        if not data.startswith(_MAGIC[kind]) or len(data) > _LARGEST_FILE:
            raise ValueError(f"it does not contain 8-bit {kind}")
        axes = data[3]
        shape = np.frombuffer(data, ">u4", axes, 4)
        return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _read_npz(folder: Path, part: str) -> tuple[NDArray[Any], NDArray[Any]]:
    paths = sorted(folder.glob(f"*{part}*.npz"))
    if not paths:
        raise Unavailable(
            f"'{folder}' has neither idx files of its {part} images nor an npz file with '{part}' "
            "in its name."
        )
    with reading(paths[0], "an npz file"), np.load(paths[0], allow_pickle=False) as file:
        return file["images"], file["labels"]
