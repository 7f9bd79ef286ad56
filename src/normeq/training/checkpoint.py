"""Checkpoints: written whole or not at all, checked when read, the newest two kept.

A checkpoint is one safetensors file: every tensor of the run under a dotted name, and the plain
values as JSON in its header beside a SHA-256 digest of it all.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from normeq._support.atomic import replacing
from normeq.errors import FileError

KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two steps."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors below one dotted name, as a state dictionary of their own."""
        prefix = f"{name}."
        return {k[len(prefix) :]: t for k, t in self.tensors.items() if k.startswith(prefix)}


def _digest(tensors: dict[str, Tensor], values: str) -> str:
    digest = hashlib.sha256(values.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def write(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
    """Write the checkpoint of a step atomically; keep the one before it, and no other."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {k: t.cpu().contiguous() for k, t in checkpoint.tensors.items()}
    values = json.dumps(checkpoint.values)
    path = folder / f"step-{step:09d}.safetensors"
    with replacing(path) as temporary:
        about = {"values": values, "digest": _digest(tensors, values)}
        temporary.write_bytes(to_bytes(tensors, about))
    # One of a later step is damaged, or the run would have gone on from it.
    kept = [other for other in stored(folder) if other <= path][:KEPT]
    for other in set(stored(folder)).difference(kept):
        other.unlink()
    return path


def stored(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, newest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint and check it against its digest."""
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header["digest"] != _digest(tensors, header["values"]):
            raise ValueError("its contents do not match its digest")
        return Checkpoint(tensors, json.loads(header["values"]))
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise FileError(f"checkpoint '{path}' is damaged and cannot be read ({error}).") from error


def newest(folder: Path) -> Checkpoint:
    """Read the newest checkpoint that is whole, warning about every damaged one before it."""
    paths = stored(folder)
    for path in paths:
        try:
            return read(path)
        except FileError as error:
            warnings.warn(f"{error} Falling back to the one before.", stacklevel=2)
    if paths:
        raise FileError(
            f"'{folder}' contains only damaged checkpoints; start again in another run folder."
        )
    raise FileError(f"'{folder}' contains no checkpoint to resume from; start without --resume.")
