"""The exceptions that normeq raises: one small family, each a sentence for a person."""

from __future__ import annotations


class NormeqError(Exception):
    """Base of everything normeq raises on purpose; the command line prints it as one sentence."""

    exit_code = 1


class UsageError(NormeqError, ValueError):
    """An argument or option that cannot be used: the call has to change."""

    exit_code = 2


class InputError(NormeqError, ValueError):
    """An image or array that cannot be processed as it is."""


class FileError(NormeqError, OSError):
    """A file that cannot be read or written: missing, truncated, corrupted or refused."""


class WeightsError(NormeqError):
    """A weights file that does not hold the network it should."""


class EquivarianceError(NormeqError, AssertionError):
    """A function that lacks an equivariance property it was asserted to have."""
