"""Progress of a run: a bar on the terminal, or calls to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Whether to show a bar, or what to call with the share of the work that is done, from 0 to 1.
Progress = bool | Callable[[float], object]
_BAR = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}"


@contextmanager
def progress_report(total: float, progress: Progress) -> Iterator[Callable[[float], object]]:
    """Give what takes the amount of each finished part of the work.

    Examples
    --------
    >>> with progress_report(8, lambda share: print(f"{share:.0%}")) as report:
    ...     _ = report(4), report(4)
    50%
    100%

    Parameters
    ----------
    total
        The whole amount.
    progress
        See `Progress`.
    """
    if callable(progress):
        call, done = progress, 0.0

        def report(amount: float) -> None:
            nonlocal done
            done += amount
            call(min(done / total, 1.0))

        yield report
        return
    with progress_bar(total, hidden=not progress) as bar:
        yield bar.update


def progress_bar(total: float, *, hidden: bool | None = None) -> Any:
    """Return a bar that shows percent and time left; on a terminal only if `hidden` is None."""
    from tqdm import tqdm

    return tqdm(total=total, disable=hidden, bar_format=_BAR)


class Shares:
    """Reports parts of one image as shares of it."""

    def __init__(self, report: Callable[[float], object]) -> None:
        self._report = report
        self._left = 1.0

    def add(self, share: float) -> None:
        """Report a share of the image, no more than is left."""
        share = min(share, self._left)
        self._left -= share
        self._report(share)

    def part(self, size: float) -> Shares:
        """Return what takes shares of a part of the work on the image."""
        return Shares(lambda share: self.add(size * share))

    def finish(self) -> None:
        """Report what is left, also of an image that failed or was skipped."""
        self.add(self._left)
