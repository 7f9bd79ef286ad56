"""A picture to judge a result by: input, output and what was removed, whole and zoomed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normeq.images import ImageFile, open_image, write

_PANEL = 512
_CROP = 120
_MARGIN = 8
_CAPTION = 24
_CAPTION_WIDTH = 320
# Grey values cover all but this share of the pixels at either end.
_CUT = 0.001

Floats = NDArray[np.float64]


def write_preview(before: Path, after: Path, target: Path, axes: str | None = None) -> None:
    """Write a PNG of the middle frame: input, output, residual, and below a crop of each.

    Input and output share one grey scale; the residual has its own, symmetric around 0. Both are
    noted in the captions, in the units of the image.

    Parameters
    ----------
    before, after
        An image and its denoised copy.
    target
        The PNG to write.
    axes
        As for reading the image.
    """
    with open_image(before, axes) as noisy, open_image(after, axes) as clean:
        frame = noisy.frames // 2
        overview = [_overview(image, frame) for image in (noisy, clean)]
        top, left = _interesting(overview[1], noisy)
        crops = [_crop(image, frame, top, left) for image in (noisy, clean)]
        reduced = _factor(noisy)
        title = noisy.path.name if noisy.frames == 1 else f"{noisy.path.name}, plane {frame}"
    low, high = _limits(overview[0])
    removed = [pair[0] - pair[1] for pair in (overview, crops)]
    finite = [part[np.isfinite(part)] for part in removed]
    reach = max((np.quantile(np.abs(part), 0.995) for part in finite if part.size), default=0.0)
    reach = reach or 1.0  # nothing was removed, or nothing is there
    scale = "" if reduced == 1 else f", reduced {reduced}x"
    captions = [
        [f"{first}: {low:.4g} to {high:.4g}", "denoised: same scale", f"removed: ±{reach:.3g}"]
        for first in (f"{title}{scale}", f"zoom at row {top}, column {left}")
    ]
    rows = [
        [_grey(pair[0], low, high), _grey(pair[1], low, high), _grey(rest, -reach, reach)]
        for pair, rest in zip((overview, crops), removed, strict=True)
    ]
    write(target, _sheet(rows, captions))


def _factor(image: ImageFile) -> int:
    """Return by how much an image is reduced to fit a panel."""
    return max(1, -(-max(image.height, image.width) // (2 * _PANEL)))


def _pixels(image: ImageFile, frame: int, start: int, stop: int) -> Floats:
    """Read rows in physical units, as one grey or three colours."""
    physical = image.physical(image.read(frame, start, stop)[..., : image.samples - image.alpha])
    return physical if physical.shape[-1] in (1, 3) else physical[..., :1]


def _overview(image: ImageFile, frame: int) -> Floats:
    """Return a frame, averaged over blocks until it fits a panel; read band by band."""
    factor = _factor(image)
    height, width = image.height // factor * factor, image.width // factor * factor
    if height == 0 or width == 0:  # a line of pixels: nothing to average
        return _pixels(image, frame, 0, image.height)[:, ::factor][::factor]
    bands = []
    step = factor * max(1, 256 // factor)
    for start in range(0, height, step):
        pixels = _pixels(image, frame, start, min(start + step, height))[:, :width]
        blocks = pixels.reshape(len(pixels) // factor, factor, width // factor, factor, -1)
        known = np.isfinite(blocks)
        counts = known.sum(axis=(1, 3))
        sums = np.where(known, blocks, 0.0).sum(axis=(1, 3))
        bands.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return np.concatenate(bands)


def _interesting(overview: Floats, image: ImageFile) -> tuple[int, int]:
    """Return the corner of the crop with the most edges."""
    factor = _factor(image)
    side = max(1, _CROP // factor)
    grey = np.nan_to_num(overview.mean(axis=-1))
    edges = np.abs(np.diff(grey, axis=0, append=grey[-1:]))
    edges += np.abs(np.diff(grey, axis=1, append=grey[:, -1:]))
    best, corner = -1.0, (0, 0)
    for row in range(0, max(1, grey.shape[0] - side + 1), max(1, side // 2)):
        for column in range(0, max(1, grey.shape[1] - side + 1), max(1, side // 2)):
            found = float(edges[row : row + side, column : column + side].mean())
            if found > best:
                best, corner = found, (row, column)
    return (
        min(corner[0] * factor, max(0, image.height - _CROP)),
        min(corner[1] * factor, max(0, image.width - _CROP)),
    )


def _crop(image: ImageFile, frame: int, top: int, left: int) -> Floats:
    stop = min(top + _CROP, image.height)
    return _pixels(image, frame, top, stop)[:, left : left + _CROP]


def _limits(values: Floats) -> tuple[float, float]:
    """Return the values to be drawn black and white."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return 0.0, 1.0
    low, high = (float(limit) for limit in np.quantile(known, (_CUT, 1 - _CUT)))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _grey(values: Floats, low: float, high: float) -> NDArray[np.uint8]:
    """Map values to 8-bit colours of the size of a panel; pixels are averaged, or shown as such."""
    from PIL import Image

    scaled = np.clip((np.nan_to_num(values, nan=low) - low) / (high - low), 0, 1)
    colors = np.broadcast_to(np.rint(255 * scaled), (*values.shape[:2], 3)).astype(np.uint8)
    longest = max(colors.shape[:2])
    height, width = (max(1, round(length * _PANEL / longest)) for length in colors.shape[:2])
    filtering = Image.Resampling.BOX if longest > _PANEL else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(colors).resize((width, height), filtering))


def _sheet(rows: list[list[NDArray[np.uint8]]], captions: list[list[str]]) -> NDArray[np.uint8]:
    """Lay panels out in a grid, each below its caption."""
    from PIL import Image, ImageDraw, ImageFont

    wide = max(_CAPTION_WIDTH, *(panel.shape[1] for row in rows for panel in row))
    tall = [max(panel.shape[0] for panel in row) for row in rows]
    width = len(rows[0]) * (wide + _MARGIN) + _MARGIN
    height = sum(tall) + len(rows) * (_CAPTION + _MARGIN) + _MARGIN
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=14)
    top = _MARGIN
    for row, texts, panel_height in zip(rows, captions, tall, strict=True):
        for column, (panel, text) in enumerate(zip(row, texts, strict=True)):
            left = _MARGIN + column * (wide + _MARGIN)
            draw.text((left, top), _fitted(text, font, wide), fill="black", font=font)
            sheet.paste(Image.fromarray(panel), (left, top + _CAPTION))
        top += panel_height + _CAPTION + _MARGIN
    colored = any(np.ptp(panel, axis=-1).any() for row in rows for panel in row)
    return np.asarray(sheet if colored else sheet.convert("L"))


def _fitted(text: str, font: Any, width: int) -> str:
    """Shorten a caption from the left until it fits."""
    if font.getlength(text) <= width:
        return text
    while font.getlength("…" + text) > width and len(text) > 1:
        text = text[1:]
    return "…" + text
