"""A small set of raw photographs in the layout of the Darmstadt Noise Dataset."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

GAIN, BASE = 2e-3, 1e-5
#: Top, left, bottom and right of each box, counted from 1 as MATLAB does.
BOXES = np.array([[1, 1, 32, 32], [9, 17, 40, 48]])


def write_darmstadt(folder: Path, images: int = 2) -> list[np.ndarray]:
    """Write the set, and return its noisy mosaics."""
    rng = np.random.default_rng(0)
    (folder / "images_raw").mkdir(parents=True)
    mosaics = []
    with h5py.File(folder / "info.mat", "w") as file:
        info = file.create_group("info")
        places = file.create_group("#refs#")
        for name in ("boundingboxes", "nlf"):
            info.create_dataset(name, (1, images), dtype=h5py.ref_dtype)
        for index in range(images):
            boxes = places.create_dataset(f"boxes{index}", data=BOXES.T.astype(float))
            noise = places.create_group(f"noise{index}")
            noise["a"], noise["b"] = np.array([[GAIN]]), np.array([[BASE]])
            info["boundingboxes"][0, index] = boxes.ref
            info["nlf"][0, index] = noise.ref
            clean = np.tile([[0.2, 0.5], [0.5, 0.8]], (24, 32))
            noisy = clean + rng.normal(0, np.sqrt(GAIN * clean + BASE))
            mosaics.append(noisy)
            with h5py.File(folder / "images_raw" / f"{index + 1:04d}.mat", "w") as image:
                image["Inoisy"] = noisy.astype(np.float32).T
    return mosaics
