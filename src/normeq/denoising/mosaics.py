"""Raw images of cameras: Bayer mosaics are denoised plane by plane, or refused if not declared."""

from __future__ import annotations

from collections.abc import Container, Iterator

from normeq.denoising.bands import Walk
from normeq.denoising.image_parts import part_reader, planes_of
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions
from normeq.errors import InputError
from normeq.images.bayer import PHASES, Bayer, BayerSource, interleaved
from normeq.images.source import Band, ImageSource
from normeq.noise.mosaic import is_bayer_mosaic_of


def start_walk(
    source: ImageSource,
    choice: Choice,
    noise: NoiseOptions,
    options: WalkOptions,
) -> Walk:
    """Prepare the walk over an image: which denoiser, told what, and seeing which planes.

    Parameters
    ----------
    source
        The image.
    choice, noise, options
        What the caller says about the model, the noise and the run. An image that looks
        like a mosaic is refused unless ``options.bayer`` says what it is.
    """
    planes = seen_planes(source, options.bayer)
    denoiser, assumed = choice.prepare(planes, noise)
    kind = MosaicWalk if isinstance(planes, BayerSource) else Walk
    return kind(denoiser, planes, assumed, options)


def seen_planes(source: ImageSource, bayer: Bayer | None) -> ImageSource:
    """Return an image as it is denoised: as it is, or as the four planes of a mosaic.

    Parameters
    ----------
    source
        The image.
    bayer
        The pattern of a mosaic; if None, an image that looks like one is refused.
    """
    if bayer is None and _looks_like_a_mosaic(source):
        raise InputError(
            "the image looks like the Bayer mosaic of a camera, whose neighbouring pixels have "
            "different colours: name its pattern with bayer='RGGB' (--bayer RGGB), or override "
            "this with 'none'."
        )
    return source if bayer in (None, "none") else BayerSource(source)


def _looks_like_a_mosaic(source: ImageSource) -> bool:
    if source.samples != 1 or source.height % 2 or source.width % 2:
        return False
    return is_bayer_mosaic_of(*part_reader(source, planes_of(source)))


class MosaicWalk(Walk):
    """A mosaic whose four planes are denoised one by one, and given back in their places."""

    source: BayerSource

    def bands(self, done: Container[tuple[int, ...]] = ()) -> Iterator[Band]:
        """Yield whole denoised mosaics, without those whose (frame, 0) are in `done`."""
        frames = range(self.source.frames)
        finished = {frame for frame in frames if (frame // len(PHASES), 0) in done}
        starts = range(0, self.source.height, self.plan.rows)
        skipped = {(frame, start) for frame in finished for start in starts}
        return interleaved(super().bands(skipped), self.source)
