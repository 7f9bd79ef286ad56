"""`normeq.adapt`: arrays or files in, a tuned network out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from normeq.adaptation.tuning_job import tune
from normeq.adaptation.tuning_options import STEPS, TuningOptions
from normeq.denoising.noise_options import NoiseName, NoiseOptions
from normeq.denoising.paths import expand
from normeq.denoising.preparation import Choice
from normeq.denoising.progress import Progress, progress_report
from normeq.images import open_image
from normeq.images.array import ArraySource
from normeq.images.axes import default_axes
from normeq.images.bayer import Bayer
from normeq.images.source import ImageSource
from normeq.models import DenoisingNetwork
from normeq.noise import NoiseModel

log = logging.getLogger(__name__)


def adapt(
    images: Any,
    model: str | Callable[..., Any] = "default",
    sigma: ArrayLike | None = None,
    *,
    noise: NoiseName | NoiseModel = "auto",
    each_plane: bool = False,
    axes: str | None = None,
    same_scene: bool = False,
    bayer: Bayer | None = None,
    steps: int = STEPS,
    minutes: float | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: Progress = False,
) -> DenoisingNetwork:
    """Tune a network on noisy images alone: ``adapt(λ·y + μ)`` is ``adapt(y)`` for λ > 0.

    The result is no worse than what it starts from, as far as can be told: tiles that are held out
    judge it, and if the estimated error does not fall by more than twice its standard error, or
    cannot be estimated, the original weights come back. The `card` of the result says which, and
    what it was tuned on.

    Parameters
    ----------
    images
        An array, the path of a file or folder, or a list of such. Tiles are read from files when
        they are needed.
    model
        The network to start from: a shipped name, a weights file or a network.
    sigma, noise, each_plane, axes, bayer
        See `normeq.denoise`. Noise that is correlated needs `same_scene`.
    same_scene
        Whether the frames of a stack show one scene, and differ by their noise alone: then they
        teach each other, and nothing is assumed of the noise.
    steps, minutes
        How long to tune at most.
    seed
        The same seed gives the same weights.
    device, progress
        See `normeq.denoise`.

    Examples
    --------
    >>> import numpy as np, normeq
    >>> net = normeq.create("unet", "norm-equiv-residual", widths=(4, 4), blocks=1)
    >>> noisy = np.random.default_rng(0).normal(1000, 5, (128, 128))
    >>> tuned = normeq.adapt(noisy, net, noise=normeq.noise.NoiseModel.uniform(5.0), steps=2)
    >>> tuned.card["adapted"]["steps"]
    2
    >>> clean = normeq.denoise(noisy, model=tuned)
    """
    choice = Choice(model, device)
    options = TuningOptions(steps, minutes, seed, same_scene, bayer)
    stated = NoiseOptions(sigma, noise, 1.0, each_plane)
    choice.check(stated)
    with opened_images(images, axes) as sources, progress_report(steps, progress) as report:
        tuned = tune(sources, choice, stated, options, report)
    log.log(logging.INFO if tuned.improved else logging.WARNING, tuned.message)
    return tuned.network


@contextmanager
def opened_images(images: Any, axes: str | None = None) -> Iterator[dict[str, ImageSource]]:
    """Give images by their names, files opened lazily and closed in the end."""
    given = images if isinstance(images, list | tuple) else [images]
    with ExitStack() as stack:
        sources: dict[str, ImageSource] = {}
        for number, image in enumerate(given, 1):
            if isinstance(image, str | os.PathLike):
                for path in expand([os.fspath(image)]):
                    sources[str(path)] = stack.enter_context(open_image(path, axes))
                continue
            array = np.asarray(image)
            named = axes or default_axes(array.shape, "pass axes='YXC'")
            sources[f"image {number}"] = ArraySource(array, named)
        yield sources
