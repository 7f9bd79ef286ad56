"""One module for each table or figure of the paper, measured anew.

To add one, write a module with a function ``reproduce(out, scale)``, and name it in `Result`.
"""

from enum import StrEnum


class Result(StrEnum):
    """A table or figure of the paper: the name of its module, with hyphens."""

    ALL = "all"
    EQUIVARIANCE_TABLE = "equivariance-table"
