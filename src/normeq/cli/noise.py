"""``normeq noise``: what noise an image has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from normeq.images import ImageFile
    from normeq.noise import NoiseModel
    from normeq.noise.sampling import Reader


def noise(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="Image file of any size.")],
    axes: Annotated[
        str | None, typer.Option(help="One letter per axis, in place of what the file says.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="PNG file for variance against level with the fit, and the autocorrelation; "
            "the number of the channel is added to its name if there are several."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what noise an image has: its level, how it depends on the signal, how far it reaches.

    One model for all planes of a channel. The estimate comes from the image alone.
    """
    from normeq._support.tables import save_figure
    from normeq.images import open_image
    from normeq.noise import estimate_noise_of, measure_blocks
    from normeq.noise.figure import noise_figure

    found = {}
    with open_image(image, axes) as source:
        channels = list(_channels(source))
        for name, read, shape in channels:
            model = found[name] = estimate_noise_of(read, shape)
            label = f"{name}: " if name else ""
            if not as_json:
                typer.echo(f"{label}{model.describe()}")
                for line in _details(model):
                    typer.echo(f"  {line}")
            if plot is not None:
                number = len(found) - 1
                path = plot.with_stem(f"{plot.stem}-{number}") if len(channels) > 1 else plot
                blocks = measure_blocks(read, shape, model.correlation)
                title = f"{image.name} {name}".strip()
                save_figure(path, partial(noise_figure, model, blocks, title))
    if as_json:
        channels_found = [{"channel": name, **model.to_dict()} for name, model in found.items()]
        typer.echo(json.dumps({"image": str(image), "noise": channels_found}, indent=2))


def _channels(source: ImageFile) -> Iterator[tuple[str, Reader, tuple[int, int, int]]]:
    """Yield name, reader and shape of the planes of each channel."""
    import numpy as np

    leading = [axis for axis in source.axes if axis not in "YX"][: len(source.leading)]
    along = leading.index("C") if "C" in leading else None
    planes: dict[tuple[int, int], list[int]] = {}
    for frame in range(source.frames):
        channel = 0 if along is None else int(np.unravel_index(frame, source.leading)[along])
        for sample in range(source.samples - source.alpha):
            planes.setdefault((channel, sample), []).append(frame)
    for number, ((_, sample), frames) in enumerate(sorted(planes.items())):
        name = f"channel {number}" if len(planes) > 1 else ""
        yield name, _reader(source, frames, sample), (len(frames), source.height, source.width)


def _reader(source: ImageFile, frames: list[int], sample: int) -> Reader:
    def read(index: int, rows: slice, columns: slice) -> NDArray[np.float64]:
        stored = source.read(frames[index], rows.start, rows.stop)
        return source.physical(stored[:, columns, sample])

    return read


def _details(model: NoiseModel) -> list[str]:
    """Say how certain it is, and what to make of it."""
    lines = []
    if not model.is_uniform:
        lines.append(
            f"variance = {model.gain:.4g} · level {'+' if model.base >= 0 else '-'} "
            f"{abs(model.base):.4g}; gain known to {model.gain_error / model.gain:.1%}"
        )
    sigma, error = model.mean_sigma, model.sigma_error(model.mean)
    lines.append(f"sigma at the mean level, {model.mean:.4g}: {sigma:.3g} ± {error:.2g}")
    return lines
