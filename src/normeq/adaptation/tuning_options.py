"""How a network is tuned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from normeq.errors import UsageError
from normeq.images.bayer import Bayer

#: Steps of a run that is not told how many.
STEPS = 160


@dataclass(frozen=True)
class TuningOptions:
    """How a network is tuned.

    Attributes
    ----------
    steps
        How many steps at most.
    minutes
        How long at most.
    seed
        Of tiles, noise and probes: the same seed gives the same weights.
    same_scene
        Whether the frames of each stack show one scene, differing by their noise alone.
    bayer
        The pattern of raw images of a camera.
    checkpoints
        Folder for the state of a run, from which it can be continued; None to keep none.
    resume
        Whether to continue from there.
    """

    steps: int = STEPS
    minutes: float | None = None
    seed: int = 0
    same_scene: bool = False
    bayer: Bayer | None = None
    checkpoints: Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UsageError(f"steps is {self.steps}; it must be at least 1.")
        if self.minutes is not None and not self.minutes > 0:
            raise UsageError(f"minutes is {self.minutes:g}; it must be positive.")
