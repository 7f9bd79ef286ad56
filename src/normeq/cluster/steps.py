"""Steps of a run on a cluster: a few at a time, each telling what comes after it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from distributed import CancelledError, Client, Future, KilledWorker, as_completed
from distributed.client import ClosedClientError
from distributed.comm.core import CommClosedError

from normeq.errors import ClusterError

# Steps that a scheduler has at hand for each thread of its workers, so that none is ever idle.
_STEPS_FOR_A_THREAD = 3
_SECONDS_BETWEEN_COUNTS = 1.0


class Step(NamedTuple):
    """Something for a worker to do, and what follows.

    Attributes
    ----------
    function, arguments
        Called on a worker.
    finish
        Called here with the result; returns the steps that can be done next.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    finish: Callable[[Any], Sequence[Step]]


def run_steps(client: Client, steps: Iterator[Step]) -> None:
    """Run steps on a cluster, those that follow from others first.

    However many there are, the scheduler knows of a few. If a worker dies, those it was at are
    done again by another.
    """
    following: deque[Step] = deque()
    running: dict[Future[Any], Step] = {}
    completed = as_completed(loop=client.loop)

    threads, counted = 0, -_SECONDS_BETWEEN_COUNTS

    def submit() -> None:
        nonlocal threads, counted
        if time.monotonic() - counted >= _SECONDS_BETWEEN_COUNTS:  # workers come and go
            threads, counted = sum(client.nthreads().values()), time.monotonic()
        while len(running) < _STEPS_FOR_A_THREAD * max(1, threads):
            step = following.popleft() if following else next(steps, None)
            if step is None:
                return
            future = client.submit(step.function, *step.arguments, pure=False)
            running[future] = step
            completed.add(future)

    try:
        submit()
        for future in completed:
            step = running.pop(future)
            following.extend(step.finish(future.result()))
            submit()
    finally:
        if running and client.status == "running":  # else it would wait for its scheduler
            with suppress(Exception):
                client.cancel(list(running), force=True)


@contextmanager
def cluster_sentences() -> Iterator[None]:
    """Turn the loss of a scheduler or of workers into a sentence."""
    again = "run the same command again to continue from what is finished"
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"{error.allowed_failures + 1} workers died in the same task, as they do when "
            f"memory is short: give them more, or choose a smaller --tile; {again}."
        ) from error
    except (CancelledError, ClosedClientError, CommClosedError, TimeoutError) as error:
        raise ClusterError(
            f"the connection to the scheduler of the cluster was lost; {again}."
        ) from error
