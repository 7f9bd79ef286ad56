"""Equivariance measured, for any callable: worst errors, and the verdict on a model."""

from normeq.equivariance.worst_errors import (
    GAINS,
    OFFSETS,
    PROPERTIES,
    TOLERANCES,
    Deviation,
    Measurement,
    Property,
    assert_equivariant,
    equivariance_error,
    image_spread,
)

__all__ = [
    "GAINS",
    "OFFSETS",
    "PROPERTIES",
    "TOLERANCES",
    "Deviation",
    "Measurement",
    "Property",
    "assert_equivariant",
    "equivariance_error",
    "image_spread",
]
