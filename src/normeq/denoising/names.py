"""Denoisers by name: shipped weights, files, classical methods, and the user's own functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from torch import nn

from normeq._support.near_misses import suggestion
from normeq.classical import METHODS
from normeq.denoising.denoiser import Denoiser, FunctionDenoiser
from normeq.denoising.network_denoiser import NetworkDenoiser
from normeq.denoising.onnx_denoiser import OnnxDenoiser
from normeq.denoising.onnx_network import OnnxNetwork
from normeq.errors import UsageError, reason
from normeq.models import load, shipped
from normeq.models.releases import installed_name


def resolve(name: str) -> Callable[..., Any]:
    """Return the network or function that a name stands for.

    Parameters
    ----------
    name
        The name of shipped weights, perhaps with a version (``"default@1"``), or of a classical
        method (`normeq.classical.METHODS`), in any case; the path of a weights file or of an ONNX
        file; or ``package.module:factory``, a function of no arguments that returns a network or
        any callable.

    Examples
    --------
    >>> resolve("math:sqrt")
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: math:sqrt could not be called without arguments: ...
    """
    if is_factory(name):
        return _call_factory(name)
    name = canonical(name)
    if is_onnx(name):
        return OnnxNetwork(name)
    return METHODS[name] if name in METHODS else load(name)


@lru_cache(maxsize=8)
def resolve_once(name: str) -> Callable[..., Any]:
    """Return what a name stands for (see `resolve`), kept for the next call."""
    return resolve(name)


def canonical(name: str) -> str:
    """Return the usual spelling of a known name, and that of a weights file as it is.

    >>> canonical("BM3D")
    'bm3d'
    >>> canonical("bm3")
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: there is no model 'bm3', ... Did you mean 'bm3d'?
    """
    known = [*shipped(), *METHODS]
    bare = installed_name(name.lower())
    if bare in known:
        return bare
    if is_factory(name) or os.path.isfile(name):
        return name
    raise UsageError(
        f"there is no model {name!r}, and no weights file of that name; 'normeq models' lists the "
        f"models.{suggestion(name, known)}"
    )


def is_factory(name: str) -> bool:
    """Tell whether a name has the form ``package.module:factory``, which runs code."""
    module, separator, factory = name.partition(":")
    return bool(separator) and module.replace(".", "").isidentifier() and factory.isidentifier()


def is_onnx(name: str) -> bool:
    """Tell whether a name is that of an ONNX file."""
    return name.lower().endswith(".onnx")


def denoiser_for(
    model: str | Callable[..., Any],
    *,
    device: str = "auto",
    compile: bool = False,
    value_range: tuple[float, float] | None = None,
) -> Denoiser:
    """Return a model behind the interface that all denoisers share.

    Denoisers of shipped names, whose weights never change, are kept for the next call.

    Parameters
    ----------
    model
        A name (see `resolve`), a network, or a function of an image and perhaps sigma.
    device, compile
        See `normeq.denoising.network_denoiser.NetworkDenoiser`.
    value_range
        What is 0 and 1 to a network that is not equivariant, which is refused without it.

    Examples
    --------
    >>> denoiser_for("median_filter").takes_sigma
    'never'
    """
    if value_range is not None and not value_range[0] < value_range[1]:
        raise UsageError(f"value_range {value_range} must go from low to high.")
    model = canonical(model) if isinstance(model, str) else model
    make = _kept_denoiser if model in shipped() else _new_denoiser
    denoiser = make(model, device, compile, value_range is None)
    if denoiser.law == "none" and value_range is None:
        raise UsageError(
            f"{denoiser.name} is not equivariant, so its result depends on units: say with "
            "value_range=(low, high) (--value-range LOW HIGH) which values are its 0 and 1."
        )
    return denoiser


def _new_denoiser(
    model: str | Callable[..., Any], device: str, compile: bool, prove: bool
) -> Denoiser:
    card: dict[str, Any] = getattr(model, "card", {})
    name = model if isinstance(model, str) else card.get("name", type(model).__name__)
    if isinstance(model, str) and is_onnx(model):
        function: Callable[..., Any] = OnnxNetwork(model, device)
    else:
        function = resolve(model) if isinstance(model, str) else model
    if isinstance(function, OnnxNetwork):
        if compile:
            raise UsageError(f"{name} is run by onnxruntime: leave compile (--compile) out.")
        return OnnxDenoiser(function, name)
    if isinstance(function, nn.Module):
        return NetworkDenoiser(function, name, device=device, compile=compile, prove=prove)
    return FunctionDenoiser(function, name)


@lru_cache(maxsize=8)
def _kept_denoiser(model: str, device: str, compile: bool, prove: bool) -> Denoiser:
    return _new_denoiser(model, device, compile, prove)


def _call_factory(name: str) -> Callable[..., Any]:
    module, _, factory = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # so that a module beside the user is found, as with python -m
    try:
        found = getattr(import_module(module), factory)
    except Exception as error:  # the code of the module is run, and may raise anything
        raise UsageError(f"{name} cannot be imported: {reason(error)}.") from error
    try:
        made: Callable[..., Any] = found()
    except TypeError as error:
        raise UsageError(f"{name} could not be called without arguments: {error}.") from error
    except Exception as error:
        raise UsageError(f"{name} failed: {type(error).__name__}: {reason(error)}.") from error
    if not callable(made):
        raise UsageError(
            f"{name} returned {type(made).__name__}, but a denoiser is a network or a function."
        )
    return made.eval() if isinstance(made, nn.Module) else made
