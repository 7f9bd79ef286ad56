"""OME-Zarr images to denoise, and what is in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr


def write_ome_zarr(
    path: Path,
    shape: tuple[int, ...] = (2, 48, 60),
    chunks: tuple[int, ...] = (1, 16, 24),
    *,
    levels: int = 1,
    dtype: str = "uint16",
    **options: Any,
) -> None:
    """Write a noisy stack with a pyramid."""
    rows, columns = np.mgrid[: shape[-2], : shape[-1]]
    noise = np.random.default_rng(0).normal(0, 20, shape)
    image = (500 + 200 * np.sin(rows / 9) * np.cos(columns / 7) + noise).astype(dtype)
    group = zarr.open_group(path, mode="w")
    datasets = []
    for level in range(levels):
        small = image[..., :: 2**level, :: 2**level]
        fitting = tuple(min(a, b) for a, b in zip(chunks, small.shape, strict=True))
        group.create_array(str(level), data=small, chunks=fitting, **(options if not level else {}))
        scale = [1.0] * (len(shape) - 2) + [2.0**level] * 2
        transforms = [{"type": "scale", "scale": scale}]
        datasets.append({"path": str(level), "coordinateTransformations": transforms})
    axes = [{"name": letter} for letter in "tczyx"[-len(shape) :]]
    image_about = {"axes": axes, "datasets": datasets}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [image_about]}


def contents(store: Path) -> dict[str, bytes]:
    """Return every file of a store."""
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    return {file.relative_to(store).as_posix(): file.read_bytes() for file in files}
