"""Classical denoisers: arrays in any units, never rescaled or clipped, one function each.

``METHODS`` knows them all by name, each called ``method(image, sigma=None, **options)``.
"""

from __future__ import annotations

from normeq.classical.by_name import Method
from normeq.classical.methods.bm3d import bm3d
from normeq.classical.methods.dct import dct
from normeq.classical.methods.filters import gaussian_filter, mean_filter, median_filter
from normeq.classical.methods.nlm import nlm
from normeq.classical.methods.nlridge import nlridge
from normeq.classical.methods.tv import tv
from normeq.classical.methods.wnnm import wnnm

__all__ = [
    "METHODS",
    "Method",
    "bm3d",
    "dct",
    "gaussian_filter",
    "mean_filter",
    "median_filter",
    "nlm",
    "nlridge",
    "tv",
    "wnnm",
]

METHODS = {
    function.__name__: Method(function.__name__, function, blind)
    for blind, functions in (
        (True, (mean_filter, gaussian_filter, median_filter)),
        (False, (tv, nlm, dct, nlridge, bm3d, wnnm)),
    )
    for function in functions
}
