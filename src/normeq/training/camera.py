"""Photographs as a camera takes them: a noisy mosaic, interpolated, balanced and brightened."""

from __future__ import annotations

import io

import numpy as np
from scipy import ndimage

from normeq.noise import poisson_gaussian
from normeq.training.samples import Floats

# Exponent from the values of a photograph to light; limits of the gains that balance red and blue
# against green; the share of the variance that is photon noise; widths in pixels of the smoothing
# that some cameras add, and the share of those that do.
_GAMMA = 2.2
_BALANCE = (1.2, 2.4)
_PHOTON_SHARE = (0.4, 1.0)
_SMOOTHING = (0.4, 1.0)
_SMOOTHED = 0.5
# Least light, as a share of white: the brightening is infinitely steep at black.
_LEAST_LIGHT = 1e-3
# The sensor has one colour at each pixel: red and blue on diagonals, green on the others.
_PLACES = ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2))
_TENT = np.outer((0.5, 1.0, 0.5), (0.5, 1.0, 0.5)).astype(np.float32)


def photographed(clean: Floats, level: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return what a camera makes of a colour image, without and with the noise of its sensor.

    Parameters
    ----------
    clean
        The scene, of shape ``(3, H, W)``, with white at 1.
    level
        About the standard deviation of the noise of a single pixel of the sensor, as it would
        show in the photograph.
    rng
        Source of randomness.
    """
    gains = np.array([rng.uniform(*_BALANCE), 1.0, rng.uniform(*_BALANCE)], np.float32)
    gains = gains[:, None, None]
    light = np.clip(clean, 0, 1) ** np.float32(_GAMMA) / gains
    sensor = _mosaic(light)
    mean = max(float(sensor.mean()), _LEAST_LIGHT)
    variance = (level * _GAMMA * mean ** (1 - 1 / _GAMMA)) ** 2
    share = rng.uniform(*_PHOTON_SHARE)
    exposed = poisson_gaussian(
        sensor, share * variance / mean, ((1 - share) * variance) ** 0.5, rng
    )
    smoothing = rng.uniform(*_SMOOTHING) if rng.random() < _SMOOTHED else 0.0
    bare, noisy = (
        _developed(mosaic.astype(np.float32), gains, smoothing) for mosaic in (sensor, exposed)
    )
    return bare, noisy


def as_jpeg(image: Floats, quality: int) -> Floats:
    """Return an image after JPEG compression: in 8 bits, within black and white."""
    from PIL import Image

    pixels = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, 2)).save(
        file, "JPEG", quality=quality
    )
    decoded = np.asarray(Image.open(file), dtype=np.float32) / np.float32(255)
    bands: Floats = decoded[None] if decoded.ndim == 2 else np.moveaxis(decoded, 2, 0)
    return np.ascontiguousarray(bands)


def _mosaic(light: Floats) -> Floats:
    """Keep one colour of each pixel."""
    mosaic = np.empty(light.shape[1:], np.float32)
    for row, column, color in _PLACES:
        mosaic[row::2, column::2] = light[color, row::2, column::2]
    return mosaic


def _developed(mosaic: Floats, gains: Floats, smoothing: float) -> Floats:
    """Interpolate, balance, smooth and brighten what a sensor has measured."""
    light = np.zeros((3, *mosaic.shape), np.float32)
    for row, column, color in _PLACES:
        light[color, row::2, column::2] = mosaic[row::2, column::2]
    for color, channel in enumerate(light):
        # Green has twice as many pixels, whose tents overlap.
        channel[...] = ndimage.convolve(channel, _TENT / (1 + (color == 1)), mode="mirror")
    if smoothing:
        light = ndimage.gaussian_filter(light, (0, smoothing, smoothing), truncate=3)
    photograph: Floats = np.clip(light * gains, 0, 1) ** np.float32(1 / _GAMMA)
    return photograph
