"""Denoisers by name: shipped weights, files, classical methods, and the user's own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import nn

from normeq.classical import METHODS
from normeq.errors import UsageError
from normeq.models import load


def resolve(name: str) -> Callable[..., Any]:
    """Return the network or function that a name stands for.

    Parameters
    ----------
    name
        The name of shipped weights or of a classical method (`normeq.classical.METHODS`), the
        path of a weights file, or ``package.module:factory``, a function of no arguments that
        returns a network or any callable.

    Examples
    --------
    >>> resolve("math:sqrt")
    Traceback (most recent call last):
    ...
    normeq.errors.UsageError: math:sqrt could not be called without arguments: ...
    """
    module, separator, factory = name.partition(":")
    if separator and module.replace(".", "").isidentifier() and factory.isidentifier():
        return _call_factory(name, module, factory)
    return METHODS[name] if name in METHODS else load(name)


def is_blind(denoiser: Callable[..., Any]) -> bool | None:
    """Whether a denoiser takes the image alone; None if it takes sigma where there is one.

    An attribute ``takes_sigma`` or ``blind`` says so, or else the parameters do. Networks without
    one are given sigma only if they need it: an optional second argument may be anything.

    Examples
    --------
    >>> is_blind(lambda image: image), is_blind(lambda image, sigma: image)
    (True, False)
    """
    if hasattr(denoiser, "takes_sigma"):
        return {"never": True, "optional": None, "always": False}[denoiser.takes_sigma]
    if hasattr(denoiser, "blind"):
        return bool(denoiser.blind)
    network = denoiser if isinstance(denoiser, nn.Module) else None
    try:
        parameters = inspect.signature(denoiser if network is None else network.forward)
    except ValueError:  # compiled code does not show them
        return None
    takes_sigma, takes_none = _binds(parameters, 2), _binds(parameters, 1)
    if takes_sigma and takes_none:
        return None if network is None else True
    return not takes_sigma


def channels_of(denoiser: Callable[..., Any]) -> int:
    """Return how many channels of an image a denoiser takes at once: 1, or 3 for colour.

    Other numbers under the name ``channels`` count something else, as the width of a network.
    """
    return 3 if getattr(denoiser, "channels", 1) == 3 else 1


def _binds(parameters: inspect.Signature, count: int) -> bool:
    try:
        parameters.bind(*range(count))
    except TypeError:
        return False
    return True


def _call_factory(name: str, module: str, factory: str) -> Callable[..., Any]:
    if "" not in sys.path:
        sys.path.insert(0, "")  # so that a module beside the user is found, as with python -m
    try:
        found = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{name} cannot be imported: {error}.") from error
    try:
        made: Callable[..., Any] = found()
    except TypeError as error:
        raise UsageError(f"{name} could not be called without arguments: {error}.") from error
    return made.eval() if isinstance(made, nn.Module) else made
