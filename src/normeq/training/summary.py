"""What a session of a run measures of itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

NETWORK, DATA, FILES = "network", "waiting for data", "validation and files"


@dataclass
class TrainingSummary:
    """Steps, samples, the best PSNR of the run, and where the time went."""

    steps: int = 0
    samples: int = 0
    best: float | None = None
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys((NETWORK, DATA, FILES), 0.0)
    )

    @contextmanager
    def timed(self, activity: str) -> Iterator[None]:
        """Add the time spent inside to an activity."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[activity] += time.perf_counter() - start

    @property
    def elapsed(self) -> float:
        """Time of all activities together."""
        return sum(self.seconds.values())

    @property
    def training(self) -> float:
        """Time of the network and of waiting for its data."""
        return self.seconds[NETWORK] + self.seconds[DATA]

    def __str__(self) -> str:
        if not self.steps:
            return "no steps were left to take."
        best = "" if self.best is None else f"best validation PSNR {self.best:.3f} dB; "
        outside = ", ".join(
            f"{self.seconds[activity] / self.elapsed:.1%} {activity}" for activity in (DATA, FILES)
        )
        return (
            f"{self.steps} steps in {self.elapsed:.0f} s: {best}"
            f"{self.samples / self.training:.1f} samples/s in training; "
            f"time outside the network: {outside}."
        )
