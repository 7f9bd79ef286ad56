"""What became of a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from normeq.images import ImageFile


@dataclass
class Outcome:
    """What became of one file; `header` holds its format, shape, axes and dtype."""

    input: str
    output: str
    status: Literal["done", "planned", "skipped", "failed"] = "failed"
    error: str | None = None
    header: dict[str, Any] = field(default_factory=dict)
    planes: int = 0
    model: str | None = None
    #: What was found out about the noise, in words, and as plain data for each image of the file.
    noise_found: list[str] = field(default_factory=list)
    noise: list[dict[str, Any]] = field(default_factory=list)
    clipped: int = 0
    resumed: bool = False
    preview: str | None = None
    #: The file with the error bars.
    std: str | None = None
    #: How good the result is, as plain data and in words, and the file with a picture of that.
    quality: dict[str, Any] | None = None
    quality_found: list[str] = field(default_factory=list)
    report: str | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the header's entries beside the others."""
        data = asdict(self)
        header: dict[str, Any] = data.pop("header")
        return data | header


def header(source: ImageFile) -> dict[str, Any]:
    """Return what the header of an image says, as plain data."""
    return {
        "format": source.format,
        "shape": list(source.shape),
        "axes": source.axes,
        "dtype": str(source.dtype),
    }
