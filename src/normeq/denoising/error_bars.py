"""Error bars: how far the noise of an image moves each pixel of its denoised copy.

To first order a denoiser is linear at an image, ``f(y + n) = f(y) + A·n``, so that noise of
covariance Σ leaves noise of covariance ``A·Σ·Aᵀ``. Its diagonal is the mean of ``(A·n)²`` over
probes, random fields that have the covariance Σ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from normeq.denoising.image_job import ImageJob
from normeq.denoising.image_parts import Place
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.pixel_noise import PixelNoise, known_noise
from normeq.denoising.tile_jobs import TileJob
from normeq.errors import UsageError
from normeq.noise.unit_probes import unit_probe

Floats = NDArray[np.float64]
Job = TypeVar("Job", bound=ImageJob)

#: How many probes error bars are estimated from, unless the caller says otherwise.
PROBES = 16
#: Size of a probe, as a share of the noise. Up to 0.05 results are those of the derivative, and too
#: high for noise of full size by up to 17 % (measured on photographs); at 0.2 they differ from the
#: derivative's by 2 to 3 %, towards the spread that noise really leaves.
STEP = 0.2
#: A step for which results are those of the derivative.
SMALL_STEP = 0.05


@dataclass(frozen=True)
class ErrorBars:
    """The standard deviation of each pixel: ``std(λ·y + μ) = λ·std(y)``.

    Attributes
    ----------
    noise
        That of each plane.
    probes
        How many: the standard error of a pixel's result is at most ``std / √(2·probes)``.
    step
        Size of a probe, as a share of the noise.
    """

    noise: dict[Place, PixelNoise]
    probes: int = PROBES
    step: float = STEP

    def __post_init__(self) -> None:
        if self.probes < 1:
            raise UsageError(f"probes is {self.probes}, but error bars need at least 1.")

    @classmethod
    def of(
        cls, job: ImageJob, noise: NoiseOptions, probes: int = PROBES, step: float = STEP
    ) -> Self:
        """Return the error bars of what a job gives, given what the caller says of the noise."""
        return cls(known_noise(job.source, job.noise, noise), probes, step)

    @property
    def runs(self) -> int:
        """How often the denoiser runs on each pixel."""
        return 1 + self.probes

    def instead_of(self, job: Job) -> Job:
        """Return a job over the same image that gives error bars in place of the image."""
        return job.measuring(self, std_dtype(job.dtype))

    def __call__(self, job: ImageJob, tiles: Sequence[TileJob]) -> Iterator[Floats]:
        """Return the standard deviations of tiles of one shape, in stored units."""
        squares = [np.zeros(tile.values[tile.crop].shape) for tile in tiles]
        before = list(job.restored(tiles, np.stack([tile.values for tile in tiles])))
        for _, responses in self.probed(job, tiles, before):
            for sums, response in zip(squares, responses, strict=True):
                sums += response**2
        for tile, sums in zip(tiles, squares, strict=True):
            untouched = tile.plane.is_free_of_noise(*tile.tile.kept)
            yield np.where(untouched, 0.0, np.sqrt(sums / self.probes))

    def probed(
        self, job: ImageJob, tiles: Sequence[TileJob], before: Sequence[Floats]
    ) -> Iterator[tuple[list[Floats], list[Floats]]]:
        """Yield probes, and what the denoiser makes of them: ``n`` and ``A·n``.

        For each tile the pixels that it keeps; ``n`` has unit variance, ``A·n`` stored units.

        Parameters
        ----------
        job, tiles
            What denoises, and tiles of one shape.
        before
            The tiles as they are denoised without a probe.
        """
        values = np.stack([tile.values for tile in tiles])
        for number in range(self.probes):
            fields = [self._field(number, tile) for tile in tiles]
            steps = [self.step * self._size(tile) * field for tile, field in _pairs(tiles, fields)]
            after = job.restored(tiles, values + np.stack(steps))
            responses = [(b - a) / self.step for a, b in zip(before, after, strict=True)]
            yield [field[tile.crop] for tile, field in _pairs(tiles, fields)], responses

    def _field(self, number: int, tile: TileJob) -> Floats:
        """Return a probe for all channels of a tile, nothing where a pixel has no value."""
        plane, rows, columns = tile.plane, tile.tile.rows.read, tile.tile.columns.read
        channels = [
            unit_probe(
                (number, plane.frame, sample),
                rows,
                columns,
                self.noise[plane.frame, sample].correlation,
            )
            for sample in plane.samples
        ]
        return np.where(tile.missing, 0.0, np.stack(channels))

    def _size(self, tile: TileJob) -> Floats:
        """Return the standard deviation of the noise for all channels, in the denoiser's units."""
        plane, rows, columns = tile.plane, tile.tile.rows.read, tile.tile.columns.read
        levels = [
            self.noise[plane.frame, sample].seen(plane, channel, rows, columns)
            for channel, sample in enumerate(plane.samples)
        ]
        return np.stack([np.atleast_2d(level) for level in levels])


def _pairs(tiles: Sequence[TileJob], fields: Iterable[Floats]) -> Iterator[tuple[TileJob, Floats]]:
    return zip(tiles, fields, strict=True)


def std_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the floating-point type of the error bars of an image.

    >>> std_dtype(np.dtype("uint16")), std_dtype(np.dtype("float64"))
    (dtype('float32'), dtype('float64'))
    """
    return np.result_type(dtype, np.float32)
