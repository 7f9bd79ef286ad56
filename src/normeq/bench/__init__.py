"""How long networks take, and what equivariance adds to it."""

from normeq.bench.files import Part, denoise_parts
from normeq.bench.networks import NETWORKS, Case, Timing, convolution_peak, measure, multiply_adds

__all__ = [
    "NETWORKS",
    "Case",
    "Part",
    "Timing",
    "convolution_peak",
    "denoise_parts",
    "measure",
    "multiply_adds",
]
