"""The laws of operations, by what they treat; importing this package registers them."""

from normeq.certification.rules import (
    attention,
    elementwise,
    linear,
    movement,
    normalization,
    ordering,
    products,
)

__all__ = [
    "attention",
    "elementwise",
    "linear",
    "movement",
    "normalization",
    "ordering",
    "products",
]
