"""Stopping cleanly: the first Ctrl-C or SIGTERM takes effect at the end of a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from normeq.errors import NormeqError


class Stopped(NormeqError):
    """A run that was asked to stop, and did so with a checkpoint."""

    exit_code = 130


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a stop was requested; a second request is immediate."""
    requested = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def request(number: int, frame: FrameType | None) -> None:
        requested.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    # Only the main thread of a process may listen to signals.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, request)
    try:
        yield requested.is_set
    finally:
        restore()
