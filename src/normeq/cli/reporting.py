"""What a run says: a line for each file, a summary for programs, messages of the package."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from normeq.denoising.outcome import Outcome


def line(outcome: Outcome) -> str:
    """Return what became of a file: the model used, the noise found, and the quality."""
    if outcome.status == "skipped":
        return f"{outcome.input}: skipped, {outcome.output} exists"
    about = outcome.header
    planes = f"{outcome.planes} plane{'' if outcome.planes == 1 else 's'}"
    clipped = f", {outcome.clipped} pixels clipped" if outcome.clipped else ""
    planned = outcome.status == "planned"
    made = "planned" if planned else f"{outcome.model}, {outcome.seconds:.1f} s"
    done = (
        f"{outcome.input} -> {outcome.output} "
        f"({about['axes']} {about['dtype']}, {planes}, {made}{clipped})"
    )
    return "\n  ".join([done, *outcome.noise_found, *outcome.quality_found])


def summary(model: str, outcomes: list[Outcome]) -> dict[str, object]:
    """Return what became of all files, as plain data."""
    counts = {
        status: sum(outcome.status == status for outcome in outcomes)
        for status in ("done", "planned", "skipped", "failed")
    }
    return {"model": model, **counts, "files": [outcome.as_dict() for outcome in outcomes]}


@contextmanager
def shown_messages(level: int) -> Iterator[None]:
    """Show our own messages on standard error, above the progress bar, and no library's.

    Parameters
    ----------
    level
        The lowest level that is shown, as in `logging`.
    """
    from tqdm.contrib.logging import logging_redirect_tqdm

    ours, theirs = logging.getLogger("normeq"), logging.getLogger("tifffile")
    shown, hidden = logging.StreamHandler(), logging.NullHandler()
    shown.setFormatter(logging.Formatter("normeq: %(message)s"))
    ours.addHandler(shown)
    theirs.addHandler(hidden)
    before = ours.level
    ours.setLevel(level)
    try:
        with logging_redirect_tqdm([ours]):
            yield
    finally:
        ours.setLevel(before)
        ours.removeHandler(shown)
        theirs.removeHandler(hidden)
