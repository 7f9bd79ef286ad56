"""The exceptions that normeq raises, one small family, and the code that turns others into them.

Each is one sentence for a person, which names the value and the way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "UNFORESEEN",
    "BusyError",
    "EquivarianceError",
    "FileError",
    "InputError",
    "NormeqError",
    "UsageError",
    "WeightsError",
    "calling",
    "printable",
    "reading",
    "reason",
    "writing",
]


#: What a library raises when it meets something that it did not foresee.
UNFORESEEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RecursionError,
    TypeError,
)


class NormeqError(Exception):
    r"""Base of everything normeq raises on purpose; the command line prints it as one sentence.

    Its text may quote a file, but it never holds what would control a terminal.

    >>> print(NormeqError("names an array \x1b[2J"))
    names an array ?[2J
    """

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(NormeqError, ValueError):
    """An argument or option that cannot be used: the call has to change."""

    exit_code = 2


class InputError(NormeqError, ValueError):
    """An image or array that cannot be processed as it is."""


class FileError(NormeqError, OSError):
    """A file that cannot be read or written: missing, truncated, corrupted or refused."""


class BusyError(FileError):
    """An output that another process is writing."""


class WeightsError(NormeqError):
    """A weights file that does not contain the network it should."""


class ResultError(NormeqError):
    """A result that must not be kept: it contains NaN or infinite values."""


class ClusterError(NormeqError):
    """A cluster that cannot do its work, or whose scheduler or workers are lost."""


class Cancelled(NormeqError):
    """A run that was stopped because its caller asked for it."""


class EquivarianceError(NormeqError, AssertionError):
    """A function that lacks an equivariance property it was asserted to have."""


def printable(text: str) -> str:
    """Return a text with a question mark for each control character, except line ends."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def reason(error: BaseException) -> str:
    """Return the first line of what an exception says, or its name if it says nothing."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return next(iter(text.strip().splitlines()), "") or type(error).__name__


@contextmanager
def reading(path: Path, format: str) -> Iterator[None]:
    """Turn whatever a library raises on a bad file into one sentence about that file."""
    try:
        yield
    except NormeqError:
        raise
    except UNFORESEEN as error:  # whose text would mean nothing to a reader
        raise FileError(
            f"{path} cannot be read as {format}: it is damaged or of an unsupported kind."
        ) from error
    except Exception as error:
        raise FileError(f"{path} cannot be read as {format} ({reason(error)}).") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure of the operating system to write into one sentence about the file."""
    try:
        yield
    except NormeqError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be written ({reason(error)}).") from error


@contextmanager
def calling(name: str, given: str) -> Iterator[None]:
    """Turn what a denoiser raises when it is given something into a sentence.

    Examples
    --------
    >>> with calling("mine:net", "images of 8x8 pixels"):
    ...     raise ValueError("too small")
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: mine:net does not take images of 8x8 pixels (too small).
    """
    try:
        yield
    except NormeqError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        raise UsageError(f"{name} does not take {given} ({reason(error)}).") from error
