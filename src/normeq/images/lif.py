"""LIF, the format of Leica microscopes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import liffile

from normeq.errors import InputError, reading
from normeq.images.axes import same_axes
from normeq.images.framed import FramedFile, chosen
from normeq.images.source import Calibration, Pixels, checked_dtype


class LifSource(FramedFile):
    """One image of a LIF file; `part` is its name or number, needed where there are several."""

    format = "LIF"

    def __init__(self, path: Path, axes: str | None = None, part: str | None = None) -> None:
        with reading(path, self.format):
            self._lif = liffile.LifFile(path)
            try:
                if self._lif.type != liffile.LifFileType.LIF:
                    raise InputError(
                        f"{path} is {self._lif.type.name}, whose pixels are elsewhere."
                    )
                image = chosen(path, {image.name: image for image in self._lif.images}, part)
                found = "".join(dim.upper() if dim.isascii() else "Q" for dim in image.dims)
                if not found.endswith(("YX", "YXS")):
                    raise InputError(f"{path} stores its axes as {found}; export it as TIFF.")
                dtype = checked_dtype(image.dtype, str(path))
                super().__init__(path, tuple(image.shape), dtype, same_axes(axes, found))
            except BaseException:
                self._lif.close()
                raise
        self._image: Any = image

    @property
    def calibration(self) -> Calibration:
        """Pixel sizes, from the coordinates of the axes."""
        sizes = {
            axis: float(values[1] - values[0]) * (1e6 if axis in "XYZ" else 1.0)
            for axis, values in self._image.coords.items()
            if axis in "XYZT" and len(values) > 1 and values.dtype.kind == "f"
        }
        return Calibration({axis: size for axis, size in sizes.items() if size > 0})

    def decode(self, frame: int) -> Pixels:
        """Return a frame."""
        if self._lif.filehandle.closed:
            self._lif = liffile.LifFile(self.path)
            self._image = next(i for i in self._lif.images if i.name == self._image.name)
        pixels: Pixels = self._image.frames[frame]
        return pixels

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._lif.close()
