"""Work in a thread of napari: one job at a time, and the newest request wins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

from normeq.errors import Cancelled, NormeqError

# Threads that import torch at the same time would meet modules that are half made.
_IMPORTING = threading.Lock()

#: Gets what stops it; yields what is shown on the way, and returns a result.
Job = Callable[[threading.Event], Generator[Any, None, Any]]


class StopFlag(threading.Event):
    """Is set when we ask for it, or when napari asks its worker to quit, as on closing."""

    worker: Any = None

    def is_set(self) -> bool:
        """Tell whether the job has to stop."""
        return super().is_set() or (self.worker is not None and self.worker.abort_requested)


class Background:
    """Runs jobs; all functions are called in the thread of the viewer.

    Parameters
    ----------
    shown
        Called with what a job yields.
    done
        Called with what a job returns.
    failed
        Called with the sentence of an error of ours; others reach napari by themselves.
    idle
        Called when a job has ended, in whatever way, and no other waits.
    """

    def __init__(
        self,
        shown: Callable[[Any], object],
        done: Callable[[Any], object],
        failed: Callable[[str], object],
        idle: Callable[[], object] = lambda: None,
    ) -> None:
        self._shown, self._done, self._failed, self._idle = shown, done, failed, idle
        self._flag: StopFlag | None = None
        self._next: Job | None = None

    @property
    def busy(self) -> bool:
        """Whether a job runs."""
        return self._flag is not None

    def start(self, job: Job) -> None:
        """Run a job once the one before it, which is stopped, has ended."""
        self._next = job
        if self._flag is None:
            self._start_next()
        else:
            self._flag.set()

    def stop(self) -> None:
        """Stop what runs and forget what waits."""
        self._next = None
        if self._flag is not None:
            self._flag.set()

    def _start_next(self) -> None:
        from napari.qt.threading import create_worker

        job, self._next = self._next, None
        if job is None:
            self._idle()
            return
        self._flag = flag = StopFlag()
        flag.worker = worker = create_worker(_with_sentences, job, flag, _start_thread=False)
        worker.yielded.connect(lambda value: None if flag.is_set() else self._shown(value))
        worker.returned.connect(lambda outcome: self._return(flag, outcome))
        worker.finished.connect(self._finish)
        worker.start()

    def _return(self, flag: StopFlag, outcome: Any) -> None:
        if isinstance(outcome, _Failure):
            self._failed(outcome.sentence)
        elif not flag.is_set():
            self._done(outcome)

    def _finish(self) -> None:
        self._flag = None
        self._start_next()


class _Failure:
    """What a job returns instead of raising an error of ours."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence


def _with_sentences(job: Job, flag: StopFlag) -> Generator[Any, None, Any]:
    with _IMPORTING:
        import_module("normeq.napari.layer_run")  # with all that computes
    try:
        return (yield from job(flag))
    except Cancelled:
        flag.set()
        return None
    except NormeqError as error:
        return _Failure(str(error))
