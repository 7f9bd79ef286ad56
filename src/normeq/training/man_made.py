"""Stripes, weaves and straight edges, drawn over photographs that have few of them.

Photographs of landscapes hardly show what people make: fabrics, bricks, fences, roofs and walls. A
network that has never seen fine stripes or long straight edges blurs them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normeq.training.draws import log_uniform, smooth_field
from normeq.training.samples import Floats

_Field = NDArray[np.float64]

# Periods of stripes in pixels, their contrasts, and how close to a square wave they are.
_PERIODS = (2.5, 14.0)
_CONTRASTS = (0.02, 0.25)
_SHARPNESS = (0.3, 4.0)
# How far stripes bend, in radians of their phase, and the grid that they bend with.
_BEND = 6.0
_BENDS = (4, 4)
# Share of striped patches with a second set of stripes, and with stripes in one part only.
_WOVEN = 0.3
_IN_PART = 0.6
# Widths in pixels of the blur of what is below, and the share of its detail that is kept.
_BLUR = (1.0, 6.0)
_KEPT = 0.5
# Facets of a patch, straight sides of each, and the width in pixels of the softest edge.
_FACETS = (2, 12)
_SIDES = (1, 5)
_SOFTEST = 1.5


def man_made(clean: Floats, rng: np.random.Generator) -> Floats:
    """Return a patch with stripes or facets drawn over it.

    Parameters
    ----------
    clean
        A patch ``(C, H, W)``, with white at 1.
    rng
        Source of randomness.
    """
    width = log_uniform(_BLUR, rng)
    shading = ndimage.gaussian_filter(clean, (0, width, width), truncate=3)
    ground = (shading + rng.uniform(0, _KEPT) * (clean - shading)).astype(np.float64)
    drawn = _striped(ground, rng) if rng.integers(2) else _faceted(ground, rng)
    limited: Floats = np.clip(drawn, 0, 1).astype(np.float32)
    return limited


def _striped(ground: _Field, rng: np.random.Generator) -> _Field:
    """Draw bent stripes, everywhere or in a part."""
    size = ground.shape[1:]
    wave = _wave(size, rng)
    if rng.random() < _WOVEN:
        wave = wave * _wave(size, rng)
    if rng.random() < _IN_PART:
        wave = wave * (1 / (1 + np.exp(-12 * smooth_field(size, _BENDS, 3, rng))))
    contrasts = log_uniform(_CONTRASTS, rng) * rng.uniform(0.5, 1, (len(ground), 1, 1))
    striped: _Field = ground + contrasts * wave
    return striped


def _wave(size: tuple[int, ...], rng: np.random.Generator) -> _Field:
    """Return parallel stripes between -1 and 1, bent a little."""
    across = _across(size, rng)
    phase = 2 * np.pi * across / log_uniform(_PERIODS, rng)
    phase += rng.uniform(0, _BEND) * smooth_field(size, _BENDS, 3, rng)
    sharpness = log_uniform(_SHARPNESS, rng)
    wave: _Field = np.tanh(sharpness * np.sin(phase)) / math.tanh(sharpness)
    return wave


def _faceted(ground: _Field, rng: np.random.Generator) -> _Field:
    """Draw flat and shaded facets with straight edges, one over the other."""
    size = ground.shape[1:]
    softness = rng.uniform(0.5, _SOFTEST)
    for _ in range(rng.integers(*_FACETS)):
        inside = np.full(size, np.inf)
        for _ in range(rng.integers(*_SIDES)):
            across = _across(size, rng)
            inside = np.minimum(inside, across - rng.uniform(-0.4, 0.4) * max(size))
        cover = np.clip(inside / softness + 0.5, 0, 1)
        shade = rng.uniform(-0.3, 0.3) * _across(size, rng) / max(size)
        color = rng.uniform(0, 1) + rng.uniform(-0.1, 0.1, (len(ground), 1, 1))
        ground = ground + cover * (color + shade - ground) * rng.uniform(0.3, 1)
    return ground


def _across(size: tuple[int, ...], rng: np.random.Generator) -> _Field:
    """Return the distance, with its sign, from a line of random direction through the centre."""
    angle = rng.uniform(0, 2 * np.pi)
    rows, columns = np.ogrid[: size[0], : size[1]]
    down, right = rows - size[0] / 2, columns - size[1] / 2
    distance: _Field = math.sin(angle) * down + math.cos(angle) * right
    return distance
