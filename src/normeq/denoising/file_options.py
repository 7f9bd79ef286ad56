"""How the caller wants files denoised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from normeq.denoising.local_runner import Runner
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.walk_options import WalkOptions
from normeq.images import MAX_PIXELS

Existing = Literal["refuse", "skip", "overwrite"]


@dataclass(frozen=True)
class FileOptions:
    """How files are denoised.

    Attributes
    ----------
    noise
        What is said about the noise.
    axes
        One letter per axis, in place of what the files say.
    existing
        What to do if the output exists.
    max_pixels
        Larger images are refused.
    walk
        How each image is denoised.
    part
        Which images of a file that holds several.
    record
        Whether to write how each result was made to a file beside it, ``NAME.json``.
    dry_run
        Whether to read headers only, and write nothing.
    std_probes
        From how many probes error bars are estimated, which are written to a file of their own,
        ``NAME.std.EXT``; None if they are not wanted.
    runner
        Who denoises an image: this process, or a cluster.
    """

    noise: NoiseOptions = field(default_factory=NoiseOptions)
    axes: str | None = None
    existing: Existing = "refuse"
    max_pixels: int = MAX_PIXELS
    walk: WalkOptions = field(default_factory=WalkOptions)
    part: str | None = None
    record: bool = False
    dry_run: bool = False
    std_probes: int | None = None
    runner: Runner = field(default_factory=Runner)
