"""Noise: drawn, and estimated from an image: how strong it is and how far it is correlated.

`simulation` draws noise, a `model` describes it, and `estimation` finds the model of an image: it
measures blocks (`block_statistics`, `spectra`) and fits the model to them (`noise_fit`).
`stabilisation` turns noise that depends on the signal into noise of one level.
"""

from normeq.noise.correlation import Correlation, autocorrelation_of_kernel, correlation_length
from normeq.noise.estimation import (
    estimate_noise,
    estimate_noise_of,
    estimate_sigma,
    measure_blocks,
)
from normeq.noise.model import NoiseModel
from normeq.noise.mosaic import is_bayer_mosaic, is_bayer_mosaic_of
from normeq.noise.simulation import KINDS, coloured, draw, poisson_gaussian
from normeq.noise.stabilisation import (
    GeneralizedAnscombe,
    Scaling,
    Stabilisation,
    stabilisation_of,
)

__all__ = [
    "KINDS",
    "Correlation",
    "GeneralizedAnscombe",
    "NoiseModel",
    "Scaling",
    "Stabilisation",
    "autocorrelation_of_kernel",
    "coloured",
    "correlation_length",
    "draw",
    "estimate_noise",
    "estimate_noise_of",
    "estimate_sigma",
    "is_bayer_mosaic",
    "is_bayer_mosaic_of",
    "measure_blocks",
    "poisson_gaussian",
    "stabilisation_of",
]
