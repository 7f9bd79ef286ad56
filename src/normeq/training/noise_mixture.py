"""The noise of a training sample, and what the network is told of it.

White noise of one level, or as `Mixture` says: levels that vary over the image, noise of random
colour, cameras' processing, and maps that are missing, inexact or deliberately too low or high.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from normeq import noise
from normeq.noise import correlation_length
from normeq.training.camera import as_jpeg, photographed
from normeq.training.draws import log_uniform, smooth_field
from normeq.training.noise_colors import (
    Lengths,
    far_reaching_noise,
    interpolated_noise,
    random_colored_noise,
)
from normeq.training.recipe import Mixture
from normeq.training.samples import Floats, Sample

_WHITE: Lengths = (0.0, 0.0)

# Standard deviation of the logarithm of a level that varies, and points a side of its grid.
_VARIATION = (0.2, 1.0)
_GRID = (2, 6)
# Limits of the logarithm of a channel's level, before they are brought to a common mean square.
_CHANNEL_FACTORS = (-0.7, 0.7)
# Share of the variance that grows with the signal, and the mean below which there is no signal.
_SIGNAL_SHARE = (0.3, 1.0)
_DARK = 0.02
# Of stabilised noise, the share of the variance that is photon noise at the mean of the patch, and
# read noises in photons: a few, because each needs a table of the transform.
_PHOTON_SHARE = (0.4, 1.0)
_READ_NOISES = (0.0, 0.0, 0.25, 0.5, 1.0, 2.0)
# Widths of the blur that stands for the estimate of the signal which a map is computed from.
_SIGNAL_BLUR = (1.5, 4.0)
_JPEG_QUALITY = (75, 98)
# Of colour samples with processed noise, the share that goes through a whole camera.
_PHOTOGRAPHED = 0.75
# Ways to tell a level other than the true one: shares of a `Mixture`.
_NOT_EXACT = ("not_told", "understated", "overstated", "inexact")
# Told levels, as shares of the true one, of samples whose remaining noise belongs to the target.
_UNDERSTATED = (0.15, 0.5)
# Told levels, as multiples of the true one, of samples that should come out smoother.
_OVERSTATED = (1.4, 4.0)
# Of the level of a patch, the least that its noise is divided by.
_LEAST_LEVEL = 0.1
# Lags at which the autocorrelation of processed noise is measured.
_LAGS = 9


@dataclass(frozen=True)
class NoisyPatch:
    """A patch with noise of which everything is known.

    Attributes
    ----------
    clean, noisy
        The patch without and with noise, of shape ``(C, H, W)``.
    sigma
        The level of the noise at every pixel, ``(C, H, W)``.
    lengths
        Its correlation length along Y and X.
    level
        The root mean square of its level.
    """

    clean: Floats
    noisy: Floats
    sigma: Floats
    lengths: Lengths
    level: float

    def told(self, factor: float = 1.0, lengths: Lengths | None = None) -> Sample:
        """Return a sample whose network is told a multiple of the level, 0 for not known."""
        sigma = np.float32(factor) * self.sigma
        axes = 1 + np.array(lengths or self.lengths, np.float32).reshape(2, 1, 1)
        correlation = sigma.mean(0, keepdims=True) * axes
        return Sample(self.noisy, self.clean, sigma, correlation, self.level)

    def with_more_noise(self, strength: float) -> Floats:
        """Add `strength` times as much noise of the same kind.

        It is the noise of the patch itself, turned by 180 degrees: that keeps its colour, and what
        is added to a pixel is independent of its noise everywhere but near the centre.
        """
        # Where next to nothing is known to be noise, a little more would become very much.
        unit = (self.noisy - self.clean) / np.maximum(self.sigma, _LEAST_LEVEL * self.level)
        noisier = self.noisy + strength * self.sigma * unit[:, ::-1, ::-1]
        return noisier.astype(np.float32)


def noisy_sample(
    clean: Floats, level: float, kind: str, mixture: Mixture | None, rng: np.random.Generator
) -> Sample:
    """Add noise of a level to a clean patch ``(C, H, W)``.

    Parameters
    ----------
    clean
        The patch, with white at 1.
    level
        Standard deviation of the noise; where it varies, its root mean square.
    kind
        Distribution of white noise, one of `normeq.noise.KINDS`.
    mixture
        Other noise, and how well it is known; None for white noise of a known level.
    rng
        Source of randomness.
    """
    if mixture is None:
        noisy = clean + noise.draw(kind, clean.shape, level, rng)
        return NoisyPatch(clean, noisy, _flat(clean, level), _WHITE, level).told()
    return _told(_noisy_patch(clean, level, kind, mixture, rng), mixture, rng)


def _noisy_patch(
    clean: Floats, level: float, kind: str, mixture: Mixture, rng: np.random.Generator
) -> NoisyPatch:
    """Add noise of one of the kinds of a mixture."""
    which = rng.random()
    if which < mixture.camera:
        return _with_camera_noise(clean, level, mixture, rng)
    if which < mixture.camera + mixture.stabilised and clean.mean() > _DARK:
        return _with_stabilised_noise(clean, level, rng)
    colored = 0 <= which - mixture.camera - mixture.stabilised < mixture.colored
    return _with_noise(clean, level, kind, colored, mixture, rng)


def _told(patch: NoisyPatch, mixture: Mixture, rng: np.random.Generator) -> Sample:
    """Decide how much of the truth the network is told."""
    shares = [getattr(mixture, kind) for kind in _NOT_EXACT]
    kind = (*_NOT_EXACT, "exact")[np.searchsorted(np.cumsum(shares), rng.random(), "right")]
    if kind == "not_told":
        return patch.told(0.0)
    if kind == "understated":
        # Told n1 of n1 + n2, the network should return clean + n2. The mean of n2 for a given sum
        # of both is this share of it, and a target without chance is learned faster.
        share = log_uniform(_UNDERSTATED, rng)
        target = patch.clean + np.float32(1 - share**2) * (patch.noisy - patch.clean)
        return replace(patch.told(share), target=target)
    if kind == "overstated":
        factor = log_uniform(_OVERSTATED, rng)
        noisier = patch.with_more_noise(math.sqrt(factor**2 - 1))
        return replace(patch.told(factor), target=noisier, overstated=True)
    if kind == "inexact":
        factor, *errors = np.exp(math.log(mixture.inexact_factor) * rng.uniform(-1, 1, 3))
        # A length is estimated better than a level, and never negative.
        y, x = (
            max((1 + length) * math.sqrt(error) - 1, 0.0)
            for length, error in zip(patch.lengths, errors, strict=True)
        )
        return patch.told(factor, (y, x))
    return patch.told()


def _with_noise(
    clean: Floats,
    level: float,
    kind: str,
    colored: bool,
    mixture: Mixture,
    rng: np.random.Generator,
) -> NoisyPatch:
    """Add white or coloured noise, of one level or of one that varies."""
    varies = rng.random()
    grows = varies < mixture.signal and clean.mean() > _DARK
    if grows and not colored:
        return _with_photon_noise(clean, level, rng)
    if colored:
        unit, lengths = random_colored_noise(clean.shape, mixture.widths, rng)
        if mixture.far and rng.random() < mixture.far:
            unit = unit + far_reaching_noise(clean.shape, rng)
    else:
        unit, lengths = noise.draw(kind, clean.shape, 1.0, rng), _WHITE
    if len(clean) > 1 and rng.random() < mixture.mixed_channels:
        unit = _mixed(unit, rng)
    if grows:
        share = rng.uniform(*_SIGNAL_SHARE)
        variance = _signal_variance(clean, clean, share)
        noisy = clean + np.float32(level) * np.sqrt(variance) * unit
        sigma = _level_from(noisy, clean, level, share, rng)
        return NoisyPatch(clean, noisy, sigma, lengths, level)
    sigma = _flat(clean, level)
    if mixture.signal <= varies < mixture.signal + mixture.smooth:
        sigma = sigma * _smooth_level(clean, rng)
    if len(clean) > 1 and rng.random() < mixture.channel_levels:
        factors = np.exp(rng.uniform(*_CHANNEL_FACTORS, (len(clean), 1, 1))).astype(np.float32)
        sigma = sigma * (factors / np.sqrt(np.mean(factors**2)))
    return NoisyPatch(clean, clean + sigma * unit, sigma, lengths, level)


def _flat(clean: Floats, level: float) -> Floats:
    return np.full(clean.shape, level, np.float32)


def _mixed(unit: Floats, rng: np.random.Generator) -> Floats:
    """Correlate the noise of channels, by combinations that keep its variance.

    They are random, or have a part that all channels share, as the noise of gray and compressed
    photographs has.
    """
    channels = len(unit)
    share = rng.uniform()
    size = (channels, channels)
    others = np.ones(size) if rng.integers(2) else rng.standard_normal(size)
    matrix = (1 - share) * np.eye(channels) + share * others
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    mixed: Floats = np.tensordot(matrix.astype(np.float32), unit, 1)
    return mixed


def _smooth_level(clean: Floats, rng: np.random.Generator) -> Floats:
    """Draw a positive map ``(1, H, W)`` that varies smoothly; its root mean square is 1."""
    points = (int(rng.integers(*_GRID)), int(rng.integers(*_GRID)))
    field = smooth_field(clean.shape[1:], points, 1, rng)
    level = np.exp(rng.uniform(*_VARIATION) * field)
    normal: Floats = (level / np.sqrt(np.mean(level**2)))[None].astype(np.float32)
    return normal


def _with_photon_noise(clean: Floats, level: float, rng: np.random.Generator) -> NoisyPatch:
    """Add photon and read noise, white."""
    share = rng.uniform(*_SIGNAL_SHARE)
    gain = share * level**2 / float(clean.mean())
    exact = noise.poisson_gaussian(clean, gain, math.sqrt(1 - share) * level, rng)
    noisy = exact.astype(np.float32)
    sigma = _level_from(noisy, clean, level, share, rng)
    return NoisyPatch(clean, noisy, sigma, _WHITE, level)


def _with_stabilised_noise(clean: Floats, level: float, rng: np.random.Generator) -> NoisyPatch:
    """Add photon and read noise, and stabilise it: few photons leave noise that is not Gaussian.

    The result is scaled such that the noise has the given level again.
    """
    gain = rng.uniform(*_PHOTON_SHARE) * level**2 / float(clean.mean())
    read_noise = gain * float(rng.choice(_READ_NOISES))
    transform = noise.GeneralizedAnscombe(gain, read_noise**2, read_noise)
    counted = noise.poisson_gaussian(np.maximum(clean, 0), gain, read_noise, rng)
    noisy, mean = (
        (level * stable).astype(np.float32)
        for stable in (transform.forward(counted), transform.mean(clean))
    )
    return NoisyPatch(mean, noisy, _flat(clean, level), _WHITE, level)


def _signal_variance(signal: Floats, clean: Floats, share: float) -> Floats:
    """Return a variance, of mean 1, of which a share is proportional to the signal."""
    relative = np.maximum(signal, 0) / clean.mean()
    variance: Floats = np.float32(1 - share) + np.float32(share) * relative
    return variance


def _level_from(
    noisy: Floats, clean: Floats, level: float, share: float, rng: np.random.Generator
) -> Floats:
    """Compute the map that a user would have: from the noisy image, smoothed.

    The exact map would give the clean image away.
    """
    width = rng.uniform(*_SIGNAL_BLUR)
    signal = ndimage.gaussian_filter(noisy, (0, width, width), truncate=3)
    sigma: Floats = np.float32(level) * np.sqrt(_signal_variance(signal, clean, share))
    return sigma


def _with_camera_noise(
    clean: Floats, level: float, mixture: Mixture, rng: np.random.Generator
) -> NoisyPatch:
    """Add noise as it comes out of a camera: interpolated or smoothed, compressed, or both.

    Its level and lengths are those measured on the result.
    """
    processed, compressed = ((True, False), (False, True), (True, True))[rng.integers(3)]
    if processed and len(clean) > 1 and rng.random() < _PHOTOGRAPHED:
        clean, noisy = photographed(clean, level, rng)
    else:
        noisy = clean + np.float32(level) * _camera_noise(clean, processed, mixture, rng)
    if compressed:
        noisy = as_jpeg(noisy, int(rng.integers(*_JPEG_QUALITY)))
    added = noisy - clean
    y, x = (correlation_length(_autocorrelation(added, axis)) for axis in (1, 2))
    # What clipping and coarse steps leave of weak noise may be nothing.
    levels = np.maximum(np.sqrt(np.mean(added**2, (1, 2), keepdims=True)), 1 / 255 / 4)
    measured = float(np.sqrt(np.mean(levels**2)))
    return NoisyPatch(clean, noisy, _flat(clean, 1.0) * levels, (y, x), measured)


def _camera_noise(
    clean: Floats, processed: bool, mixture: Mixture, rng: np.random.Generator
) -> Floats:
    """Draw noise of unit variance, interpolated or smoothed if it is processed."""
    if not processed:
        return rng.standard_normal(clean.shape, dtype=np.float32)
    if rng.integers(2):
        return interpolated_noise(clean.shape, rng)
    return random_colored_noise(clean.shape, mixture.widths, rng)[0]


def _autocorrelation(added: Floats, axis: int) -> Floats:
    along = np.moveaxis(added, axis, 0)
    extent = len(along)
    power = float(np.mean(along**2)) or 1.0
    lags = range(1, min(_LAGS, extent))
    rho = [float(np.mean(along[:-lag] * along[lag:])) / power for lag in lags]
    return np.array([1.0, *rho], np.float32)
