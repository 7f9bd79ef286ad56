"""Noisy images to try things on, made on the fly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq._support.photograph import sample_photograph

LayerData = tuple[NDArray[Any], dict[str, Any], str]

# Micrometers a pixel, and from one plane to the next.
_PIXEL, _STEP = 0.2, 1.0


def noisy_cells() -> list[LayerData]:
    """Return stacks of cells with bright vesicles that drift, as a camera counts their photons."""
    rng = np.random.default_rng(0)
    times, planes, side = 4, 5, 320
    z, y, x = np.meshgrid(np.arange(planes), np.arange(side), np.arange(side), indexing="ij")
    cells = _cells(rng, z, y, x)
    frames = np.stack([cells + _vesicles(time, z, y, x) for time in range(times)])
    photons = rng.poisson(frames)
    counts = 100 + 2.0 * photons + rng.normal(0, 3, frames.shape)
    look = {
        "name": "noisy cells",
        "axis_labels": ("t", "z", "y", "x"),
        "scale": (1.0, _STEP, _PIXEL, _PIXEL),
        "units": ("s", "um", "um", "um"),
        "colormap": "gray",
        "contrast_limits": (100.0, 260.0),
    }
    return [(np.rint(counts).clip(0, 65535).astype(np.uint16), look, "image")]


def _cells(
    rng: np.random.Generator, z: NDArray[Any], y: NDArray[Any], x: NDArray[Any]
) -> NDArray[np.float64]:
    """Return expected photons of cell bodies with dark nuclei and a grain, and of the dark."""
    from scipy.ndimage import gaussian_filter

    light = np.full(z.shape, 3.0)
    for _ in range(9):
        centre = rng.uniform((1, 20, 20), (z.shape[0] - 1, z.shape[1] - 20, z.shape[2] - 20))
        long, wide, angle = rng.uniform(45, 70), rng.uniform(28, 42), rng.uniform(0, np.pi)
        u = (y - centre[1]) * np.cos(angle) + (x - centre[2]) * np.sin(angle)
        v = (x - centre[2]) * np.cos(angle) - (y - centre[1]) * np.sin(angle)
        depth = ((z - centre[0]) / 3.0) ** 2
        body = (u / long) ** 2 + (v / wide) ** 2 + depth
        nucleus = (u / (0.35 * long)) ** 2 + (v / (0.4 * wide)) ** 2 + depth
        light += 22 * _inside(body, 0.08) - 14 * _inside(nucleus, 0.15)
    grain = gaussian_filter(rng.standard_normal(z.shape), (1, 2, 2))
    photons: NDArray[np.float64] = np.maximum(light * (1 + 0.25 * grain / grain.std()), 2.0)
    return photons


def _vesicles(time: int, z: NDArray[Any], y: NDArray[Any], x: NDArray[Any]) -> NDArray[np.float64]:
    """Return the photons of small bright spots, which have moved on at a later time."""
    rng = np.random.default_rng(1)
    light = np.zeros(z.shape)
    for _ in range(160):
        at = rng.uniform((0, 5, 5), (z.shape[0], z.shape[1] - 5, z.shape[2] - 5))
        at = at + time * rng.normal(0, (0.05, 2.0, 2.0))
        size, power = rng.uniform(1.0, 2.2), rng.uniform(15, 60)
        rows = slice(max(0, int(at[1]) - 8), int(at[1]) + 9)
        columns = slice(max(0, int(at[2]) - 8), int(at[2]) + 9)
        part = (slice(None), rows, columns)
        distance = ((y[part] - at[1]) ** 2 + (x[part] - at[2]) ** 2) / size**2
        light[part] += power * np.exp(-0.5 * (distance + (z[part] - at[0]) ** 2))
    return light


def _inside(distance: NDArray[Any], softness: float) -> NDArray[np.float64]:
    """Return 1 inside an ellipsoid, 0 outside, and a soft step between."""
    edge: NDArray[np.float64] = 1 / (1 + np.exp(np.clip((distance - 1) / softness, -50, 50)))
    return edge


def noisy_photograph() -> list[LayerData]:
    """Return a photograph with Gaussian noise of standard deviation 25, where white is 255."""
    clean = 255 * sample_photograph()
    noise = np.random.default_rng(0).normal(0, 25, clean.shape)
    look = {"name": "noisy photograph", "axis_labels": ("y", "x"), "contrast_limits": (0, 255)}
    return [((clean + noise).astype(np.float32), look, "image")]


def noisy_colours() -> list[LayerData]:
    """Return a photograph in colour with noise of standard deviation 20, of 255."""
    from skimage.data import astronaut

    noise = np.random.default_rng(0).normal(0, 20, astronaut().shape)
    noisy = np.rint(astronaut() + noise).clip(0, 255).astype(np.uint8)
    return [(noisy, {"name": "noisy colours", "rgb": True}, "image")]
