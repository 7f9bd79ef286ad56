"""A dask cluster by its address, or one of this machine's own processes."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from normeq.errors import UsageError, reason

if TYPE_CHECKING:
    from distributed import Client
    from tornado.ioloop import IOLoop

_LOCAL = re.compile("local(?::([0-9]+))?")
_PATIENCE = "20s"
# How often dask's event loop is started before the machine counts as too busy.
_STARTS = 3
# What `normeq.keep_freed` does, for all threads of a process from its start.
_KEEP_FREED = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
}

# Loggers to which dask's configuration gives levels of their own.
_LIBRARIES = (
    "asyncio",
    "bokeh",
    "distributed",
    "distributed.client",
    "tornado",
    "tornado.application",
)


@contextmanager
def _silent_libraries() -> Iterator[None]:
    """Keep tracebacks of libraries off the terminal: what they mean is said in a sentence."""
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def connected(where: str) -> Iterator[Client]:
    """Connect to a cluster, and end it afterwards if it was started here.

    Parameters
    ----------
    where
        The address of a scheduler, such as ``tcp://10.0.0.5:8786``; ``local`` for one process on
        each processor of this machine, ``local:4`` for four.

    Examples
    --------
    >>> with connected("local:0"):
    ...     pass
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: --cluster local:0 has no workers: use local:N with N at least 1.
    """
    try:
        import distributed  # noqa: F401, which the functions below need
    except ImportError as error:
        raise UsageError("--cluster needs dask: pip install 'normeq[dask]'.") from error
    local = _LOCAL.fullmatch(where)
    with (
        _silent_libraries(),
        _event_loop() as loop,
        _of_this_machine(where, local[1], loop) if local else _at(where, loop) as client,
    ):
        yield client


def _at(address: str, loop: IOLoop) -> Client:
    """Connect to a scheduler."""
    from distributed import Client

    try:
        return Client(address, timeout=_PATIENCE, set_as_default=False, loop=loop)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"no dask scheduler answers at {address!r} ({reason(error)}): give the address that "
            "it prints when it starts, or local."
        ) from error


@contextmanager
def _of_this_machine(where: str, workers: str | None, loop: IOLoop) -> Iterator[Client]:
    """Start a cluster of processes on this machine, as many as processors if it is not said."""
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster

    count = int(workers or CPU_COUNT)
    if count < 1:
        raise UsageError(f"--cluster {where} has no workers: use local:N with N at least 1.")
    with (
        LocalCluster(
            loop=loop,
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            env=_KEEP_FREED,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        # A terminal sends Ctrl-C to all processes; the command alone is to end them.
        client.register_worker_callbacks(_ignore_interrupts)
        yield client


@contextmanager
def _event_loop() -> Iterator[IOLoop]:
    """Run dask's event loop in a thread.

    Dask gives the thread ten seconds to start and then fails with a bare assertion, which has
    happened on a busy machine: it is given more than one chance.
    """
    from distributed.utils import LoopRunner

    for _ in range(_STARTS):
        runner = LoopRunner()
        try:
            runner.start()
        except AssertionError:
            continue
        try:
            yield runner.loop
        finally:
            runner.stop()
        return
    raise UsageError(
        f"dask's event loop did not start in {_STARTS} attempts of ten seconds: try again when "
        "the machine is less busy."
    )


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
