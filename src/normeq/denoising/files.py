"""The main job on files: each image in, the same file with less noise out, or none at all."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from normeq.denoising.ensemble import EnsembleSize
from normeq.denoising.error_bars import PROBES
from normeq.denoising.file_options import Existing, FileOptions
from normeq.denoising.noise_options import NoiseName, NoiseOptions, Sigma
from normeq.denoising.one_file import denoise_file
from normeq.denoising.outcome import Outcome
from normeq.denoising.paths import expand, output_paths
from normeq.denoising.preparation import Choice
from normeq.denoising.progress import Progress, Shares, progress_report
from normeq.denoising.walk_options import NanPolicy, WalkOptions
from normeq.errors import Cancelled, NormeqError, reason
from normeq.images import MAX_PIXELS
from normeq.images.bayer import Bayer
from normeq.noise import NoiseModel

log = logging.getLogger(__name__)


def denoise_files(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    sigma: Sigma = None,
    noise: NoiseName | NoiseModel = "auto",
    strength: float = 1.0,
    each_plane: bool = False,
    model: str | Callable[..., Any] = "default",
    ensemble: EnsembleSize = 1,
    axes: str | None = None,
    part: str | None = None,
    record: bool = False,
    std: bool = False,
    probes: int = PROBES,
    bayer: Bayer | None = None,
    tile: int | None = None,
    device: str = "auto",
    compile: bool = False,
    nan: NanPolicy = "raise",
    value_range: tuple[float, float] | None = None,
    existing: Existing = "refuse",
    max_pixels: int = MAX_PIXELS,
    progress: Progress = False,
    cancel: threading.Event | None = None,
) -> list[Outcome]:
    """Denoise image files, as ``normeq denoise`` does; one that fails does not stop the others.

    Dtype, axes, pixel size and header are kept. Files larger than memory are streamed, and no
    partial result ever stands under its final name.

    Parameters
    ----------
    inputs
        Images, folders of images, or patterns.
    output
        A file for one image, or a folder; ``NAME.denoised.EXT`` beside each image if None.
    sigma, noise, strength, each_plane, model, ensemble, axes, bayer
        See `normeq.denoise`.
    tile, device, compile, nan, value_range
        See `normeq.denoise`.
    part
        Which images of a file that holds several, such as ``"SCI"`` or ``"1,4"`` of a FITS file.
    record
        Whether to write how each result was made to a file beside it, ``NAME.json``.
    std, probes
        Whether to write error bars to a file beside each result, ``NAME.std.EXT``, and from how
        many probes; see ``return_std`` of `normeq.denoise`.
    existing
        What to do if an output exists: ``"refuse"``, ``"skip"`` or ``"overwrite"``.
    max_pixels
        Larger images are refused.
    progress, cancel
        See `normeq.denoise`.

    Examples
    --------
    >>> import tempfile, numpy as np, normeq
    >>> folder = Path(tempfile.mkdtemp())
    >>> normeq.images.write(folder / "noisy.tif", np.eye(16, dtype=np.uint16))
    >>> [outcome] = normeq.denoise_files(folder / "noisy.tif", model="median_filter")
    >>> outcome.status, Path(outcome.output).name
    ('done', 'noisy.denoised.tif')
    """
    given = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    paths = expand([os.fspath(path) for path in given])
    targets = output_paths(paths, None if output is None else Path(output))
    choice = Choice(model, device, compile, value_range, ensemble)
    walk = WalkOptions(nan, None, tile, value_range, bayer, cancel)
    assumed = NoiseOptions(sigma, noise, strength, each_plane)
    options = FileOptions(
        assumed,
        axes,
        existing,
        max_pixels,
        walk,
        part,
        record,
        std_probes=probes if std else None,
    )
    with progress_report(len(paths), progress) as report:
        return list(outcomes(paths, targets, choice, options, report))


def outcomes(
    inputs: Sequence[Path],
    outputs: Sequence[Path],
    choice: Choice,
    options: FileOptions,
    report: Callable[[float], object] = lambda share: None,
) -> Iterator[Outcome]:
    """Denoise images one by one; one that fails does not stop the others.

    Parameters
    ----------
    inputs, outputs
        Images, and where each result goes.
    choice, options
        What denoises them, and how.
    report
        Called with each share of an image that is finished; those of one image add up to 1.
    """
    choice.check(options.noise)
    for path, target in zip(inputs, outputs, strict=True):
        outcome = Outcome(str(path), str(target))
        start = time.perf_counter()
        shares = Shares(report)
        try:
            denoise_file(path, target, choice, options, outcome, shares)
        except Cancelled:
            raise
        except NormeqError as error:
            outcome.error = _about(path, str(error))
        except Exception as error:  # whatever it is, it is about this file only
            log.debug("unexpected", exc_info=error)
            outcome.error = f"{path}: {type(error).__name__}: {reason(error)}"
        shares.finish()
        outcome.seconds = round(time.perf_counter() - start, 3)
        yield outcome


def _about(path: Path, sentence: str) -> str:
    """Let a sentence begin with the file it is about."""
    return sentence if str(path) in sentence else f"{path}: {sentence}"
