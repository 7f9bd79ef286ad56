"""Noise as a command line states it: numbers, files, or the data sheet of a camera."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from normeq.denoising.noise_options import NoiseName, NoiseOptions, Sigma
from normeq.errors import UsageError, reading
from normeq.images import ImageFile, open_image
from normeq.noise import NoiseModel

_TABLES = (".txt", ".csv")


def read_sigma(text: str | None) -> Sigma:
    """Return the noise level that a word stands for: a number, ``auto``, or what a file holds.

    A table (.txt, .csv) has one number for each plane; any readable image is a map.

    Examples
    --------
    >>> read_sigma("12.5")
    12.5
    """
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not os.path.exists(path):
        raise UsageError(f"sigma '{text}' is neither a number, nor 'auto', nor a file.")
    if path.suffix.lower() not in _TABLES:
        return open_image(path)
    with reading(path, "a table of numbers"):
        return np.loadtxt(path, delimiter="," if path.suffix.lower() == ".csv" else None).ravel()


@contextmanager
def noise_options(
    sigma: str | None,
    noise: NoiseName,
    *,
    strength: float = 1.0,
    each_plane: bool = False,
    gain: float | None = None,
    read_noise: float | None = None,
    offset: float | None = None,
) -> Iterator[NoiseOptions]:
    """Bring together what a command line says about the noise; a map is closed in the end.

    Parameters
    ----------
    sigma, noise, strength, each_plane
        See `normeq.denoise`; sigma as `read_sigma` takes it.
    gain, read_noise, offset
        Of a calibrated camera, in the units of the image: ``base = read_noise² - gain · offset``.
    """
    stated: NoiseName | NoiseModel = noise
    if gain is not None:
        if noise != "auto" or sigma is not None:
            raise UsageError("--gain already describes the noise: leave out --noise and --sigma.")
        stated = NoiseModel.from_camera(gain, read_noise or 0.0, offset or 0.0)
    elif read_noise is not None or offset is not None:
        raise UsageError(
            "--read-noise and --offset describe a calibrated camera: pass --gain as well."
        )
    level = read_sigma(sigma)
    try:
        yield NoiseOptions(level, stated, strength, each_plane)
    finally:
        if isinstance(level, ImageFile):
            level.close()
