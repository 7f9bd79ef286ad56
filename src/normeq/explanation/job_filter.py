"""The adaptive filter of a pixel of an image that is being denoised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from normeq.denoising.image_job import ImageJob
from normeq.denoising.image_parts import parts_of
from normeq.errors import UsageError
from normeq.explanation.adaptive_filter import AdaptiveFilter, explain
from normeq.explanation.file_plane import FilePlane


def explain_job(
    job: ImageJob,
    net: Callable[..., Any] | None,
    frame: int,
    at: tuple[int, int],
    *,
    sample: int = 0,
) -> AdaptiveFilter:
    """Return what a denoised pixel is made of, in the units of the image.

    The network alone is explained: it is told the noise level of the job, but sees the image
    without a transform.

    Parameters
    ----------
    job
        The image, and what is assumed of its noise.
    net
        The network that its denoiser runs; anything else is refused.
    frame, at
        The frame, and the row and column in it.
    sample
        The channel of an image whose channels are interleaved.
    """
    name = job.denoiser.name
    if not isinstance(net, nn.Module):
        raise UsageError(
            f"{name} is not a network, and filters are derivatives of networks: choose another "
            "model."
        )
    together = job.denoiser.channels > 1
    samples = range(job.denoiser.channels) if together else [sample]
    low, high = job.options.value_range or (0.0, 1.0)
    plane = FilePlane(job.source, frame, samples, job.options.value_range)
    level = told_level(job, frame, sample)
    told = None if level is None else level / (high - low)
    found = explain(net, plane, at, sigma=told, channel=sample if together else 0)
    return found.in_units(high - low, low)


def told_level(job: ImageJob, frame: int, sample: int) -> float | None:
    """Return the noise level that the network is told of a plane, in the image's units."""
    noise = job.noise.of(frame, sample)
    if noise.level is None or noise.transform is None:
        return noise.level
    parts = parts_of(job.source, each_plane=False)
    part = next(name for name, places in parts.items() if (frame, sample) in places)
    return job.noise.found[part].mean_sigma
