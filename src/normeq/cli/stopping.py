"""Ctrl-C and SIGTERM: a command cleans up, says how to go on, and ends with 130 or 143."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_NEXT = {
    "adapt": "run it again with --resume to continue",
    "denoise": "run it again with --skip-existing to continue: finished results are kept, and "
    "a Zarr resumes",
    "explore": "run it again to see the page again",
    "reproduce": "run it again to continue: trained networks are kept",
    "train": "run it again with --resume to continue",
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


def end_at_once(command: str, stop: KeyboardInterrupt) -> NoReturn:
    """End a command at once, even if its threads are at work."""
    sys.stderr.write(f"normeq: {advice(command)}\n")
    sys.stderr.flush()
    os._exit(exit_code(stop))


def advice(command: str | None) -> str:
    """Say that a command was stopped, and how to continue.

    >>> advice("bench")
    'stopped; every result that was written is complete; run it again to start over.'
    """
    further = _NEXT.get(command or "", "run it again to start over")
    return f"stopped; every result that was written is complete; {further}."
