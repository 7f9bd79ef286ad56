"""Ctrl-C and SIGTERM: a command cleans up, says how to go on, and ends with 130 or 143."""

from __future__ import annotations

import signal
from types import FrameType

_NEXT = {
    "denoise": "give the same command again with --skip-existing to go on: finished results stay, "
    "and a Zarr resumes",
    "reproduce": "give the same command again to go on: trained networks stay",
    "train": "give the same command again with --resume to go on",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM, which stops a command where Ctrl-C would."""


def listen() -> None:
    """Turn SIGTERM into an exception, so that temporary files and locks are removed."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return what a shell expects of a program that a signal has ended."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def advice(command: str | None) -> str:
    """Say that a command was stopped, and how to go on.

    >>> advice("bench")
    'stopped; results that are there are complete; give the same command again to start over.'
    """
    further = _NEXT.get(command or "", "give the same command again to start over")
    return f"stopped; results that are there are complete; {further}."
