"""A dask cluster by its address, or one of this machine's own processes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from normeq.errors import UsageError, reason

if TYPE_CHECKING:
    from distributed import Client

_LOCAL = re.compile("local(?::([0-9]+))?")
_PATIENCE = "20s"


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
    normeq.errors.UsageError: --cluster local:0 has no worker: give a number from 1 up.
    """
    try:
        from dask.system import CPU_COUNT
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise UsageError("--cluster needs dask: pip install 'normeq[dask]'.") from error
    local = _LOCAL.fullmatch(where)
    if local is None:
        try:
            client = Client(where, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(
                f"no dask scheduler answers at {where!r} ({reason(error)}): give the address that "
                "it prints when it starts, or local."
            ) from error
        with client:
            yield client
        return
    count = int(local[1] or CPU_COUNT)
    if count < 1:
        raise UsageError(f"--cluster {where} has no worker: give a number from 1 up.")
    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
