"""Normalization-equivariant networks, and image denoising that does not care about units.

A function is normalization-equivariant when ``f(λ·y + μ) = λ·f(y) + μ`` for every gain
``λ > 0`` and every offset ``μ``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from normeq import classical, images, models, nn, noise
    from normeq._support.allocator import keep_freed
    from normeq.adaptation import adapt
    from normeq.adaptation.assessment import quality
    from normeq.certification import Status, certify
    from normeq.conversion import convert
    from normeq.denoising.arrays import denoise
    from normeq.denoising.files import denoise_files
    from normeq.equivariance import assert_equivariant, equivariance_error
    from normeq.errors import NormeqError
    from normeq.explanation import explain
    from normeq.exporting import export
    from normeq.models import create, load, save
    from normeq.nn import fold, normalized
    from normeq.noise import estimate_sigma

__version__ = "0.1.0"

# Where each public name lives. Loaded on first use, so that importing normeq costs nothing.
_HOME = {
    "NormeqError": "normeq.errors",
    "Status": "normeq.certification",
    "adapt": "normeq.adaptation",
    "assert_equivariant": "normeq.equivariance",
    "certify": "normeq.certification",
    "convert": "normeq.conversion",
    "create": "normeq.models",
    "denoise": "normeq.denoising.arrays",
    "denoise_files": "normeq.denoising.files",
    "equivariance_error": "normeq.equivariance",
    "estimate_sigma": "normeq.noise",
    "explain": "normeq.explanation",
    "export": "normeq.exporting",
    "fold": "normeq.nn",
    "keep_freed": "normeq._support.allocator",
    "load": "normeq.models",
    "normalized": "normeq.nn",
    "quality": "normeq.adaptation.assessment",
    "save": "normeq.models",
}
_SUBPACKAGES = ("classical", "images", "models", "nn", "noise")

__all__ = [
    "NormeqError",
    "Status",
    "adapt",
    "assert_equivariant",
    "certify",
    "classical",
    "convert",
    "create",
    "denoise",
    "denoise_files",
    "equivariance_error",
    "estimate_sigma",
    "explain",
    "export",
    "fold",
    "images",
    "keep_freed",
    "load",
    "models",
    "nn",
    "noise",
    "normalized",
    "quality",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"normeq.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'normeq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
