"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer


class AssumedKind(StrEnum):
    """What kind of noise the denoiser assumes."""

    AUTO = "auto"
    GAUSSIAN = "gaussian"
    POISSON_GAUSSIAN = "poisson-gaussian"
    LEARNED = "learned"


class BayerPattern(StrEnum):
    """The colours of the first two rows and columns of a raw image."""

    RGGB = "RGGB"
    BGGR = "BGGR"
    GRBG = "GRBG"
    GBRG = "GBRG"
    NONE = "none"


class Symmetries(StrEnum):
    """How many symmetries of the square a result is the mean over."""

    ONE = "1"
    TWO = "2"
    EIGHT = "8"

    @property
    def size(self) -> Literal[1, 2, 8]:
        """The number."""
        sizes: dict[str, Literal[1, 2, 8]] = {"1": 1, "2": 2, "8": 8}
        return sizes[self.value]


class Nan(StrEnum):
    """What to do with pixels that are NaN or infinite."""

    RAISE = "raise"
    KEEP = "keep"


Model = Annotated[
    str,
    typer.Option(
        help="A name that 'normeq models' lists, a weights or ONNX file, or module:factory, which "
        "runs code from the working directory."
    ),
]
Ensemble = Annotated[
    Symmetries,
    typer.Option(
        help="Mean over the image's mirror images and turns: 8 takes eight times as long, for a "
        "little less error."
    ),
]
Axes = Annotated[
    str | None, typer.Option(help="One letter per axis, such as TZYX; Y rows, X columns.")
]
Bayer = Annotated[
    BayerPattern | None,
    typer.Option(
        help="Pattern of a camera's raw image, whose four planes are denoised one by one; none: "
        "the image is not one."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps; auto takes a GPU if there is one.")]
Sigma = Annotated[
    str | None,
    typer.Option(
        help="Noise level in the image's units; 'auto' to estimate one; or a file: a number for "
        "each plane (.txt, .csv), or an image that is a map."
    ),
]
Noise = Annotated[
    AssumedKind,
    typer.Option(
        help="auto finds out from the image; gaussian: one level; poisson-gaussian: grows with "
        "the signal; learned: fitted to the image."
    ),
]
Strength = Annotated[
    float, typer.Option(help="Factor on the noise level: above 1 removes more, below 1 less.")
]
EachPlane = Annotated[
    bool, typer.Option("--each-plane", help="Estimate the noise of every plane on its own.")
]
Gain = Annotated[
    float | None, typer.Option(help="Calibrated camera: grey levels per photo-electron.")
]
ReadNoise = Annotated[
    float | None, typer.Option(help="Calibrated camera: noise in the dark, in grey levels.")
]
Offset = Annotated[
    float | None, typer.Option(help="Calibrated camera: mean grey level in the dark.")
]
SameScene = Annotated[
    bool,
    typer.Option(
        "--same-scene",
        help="The frames of a stack show one scene, and differ by their noise alone: they teach "
        "each other.",
    ),
]
Steps = Annotated[int | None, typer.Option(min=1, help="Steps of the tuning, at most.")]
Minutes = Annotated[float | None, typer.Option(help="Time of the tuning, at most.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same weights.")]
