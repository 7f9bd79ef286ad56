"""One module for each table or figure of the paper, measured anew.

To add one, write a module with a function ``reproduce(workspace)``, and ``networks(scale)`` if it
needs trained ones, and name it in `Result`.
"""

from enum import StrEnum


class Result(StrEnum):
    """A table, a figure or the text of the paper: its module, with hyphens; in order of `all`."""

    ALL = "all"
    EQUIVARIANCE_TABLE = "equivariance-table"
    PROPOSITIONS = "propositions"
    TRAINING_TABLE = "training-table"
    NOISE_GENERALIZATION = "noise-generalization"
    EXPLICIT_NORMALIZATION = "explicit-normalization"
    ADAPTIVE_FILTERS = "adaptive-filters"
    NORMALIZATION_SWEEP = "normalization-sweep"
    PSNR_TABLE = "psnr-table"
    RAW_TABLE = "raw-table"
    NOISE_FAMILIES = "noise-families"
    CLASSIFICATION_TABLE = "classification-table"
    TIME_TABLE = "time-table"
