"""Noise: drawing it, and measuring how much of it an image holds and how far it is correlated."""

from normeq.noise.correlation import autocorrelation_of_kernel, correlation_length
from normeq.noise.drawing import KINDS, draw, poisson_gaussian
from normeq.noise.level import estimate_sigma

__all__ = [
    "KINDS",
    "autocorrelation_of_kernel",
    "correlation_length",
    "draw",
    "estimate_sigma",
    "poisson_gaussian",
]
