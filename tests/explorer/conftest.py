from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile
from skimage import data

from normeq.explorer.exploration import Exploration
from normeq.images import open_image


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of three noisy planes of more than one tile each."""
    path = tmp_path_factory.mktemp("images") / "stack.tif"
    clean = data.camera()[:400, 100:500].astype(float)
    planes = np.stack([1000 + 8 * clean, 1200 + 8 * clean[::-1], 900 + 4 * clean])
    noise = np.random.default_rng(0).normal(0, 120, planes.shape)
    pixels = (planes + noise).clip(0).astype(np.uint16)
    tifffile.imwrite(path, pixels, imagej=True, metadata={"axes": "ZYX"})
    return path


@pytest.fixture(scope="session")
def exploration(stack: Path, weights: Path) -> Iterator[Exploration]:
    with open_image(stack) as image:
        yield Exploration(image, str(weights))
