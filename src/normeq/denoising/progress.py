"""Progress of a run: a bar on the terminal, or calls to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Whether to show a bar, or what to call with the pixels done so far and those there are.
Progress = bool | Callable[[int, int], object]


@contextmanager
def progress_report(total: int, progress: Progress | None) -> Iterator[Callable[[int], object]]:
    """Give what takes the number of pixels of each finished part.

    Examples
    --------
    >>> with progress_report(8, lambda done, total: print(f"{done} of {total}")) as report:
    ...     _ = report(4), report(4)
    4 of 8
    8 of 8

    Parameters
    ----------
    total
        Pixels there are.
    progress
        See `Progress`; None shows a bar on a terminal only.
    """
    if callable(progress):
        call, done = progress, 0

        def report(pixels: int) -> None:
            nonlocal done
            done += pixels
            call(done, total)

        yield report
        return
    from tqdm import tqdm

    hidden = None if progress is None else not progress
    with tqdm(total=total, disable=hidden, unit="pixel", unit_scale=True) as bar:
        yield bar.update
