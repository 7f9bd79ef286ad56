"""The laws of operations, by what they treat; importing this package registers them."""

from normeq.certification.rules import (
    attention,
    elementwise,
    gathering,
    linear,
    movement,
    normalization,
    ordering,
    products,
    spectral,
)

__all__ = [
    "attention",
    "elementwise",
    "gathering",
    "linear",
    "movement",
    "normalization",
    "ordering",
    "products",
    "spectral",
]
