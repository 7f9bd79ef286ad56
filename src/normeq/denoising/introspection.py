"""What can be found out about a network or function before it is used as a denoiser."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from normeq.errors import NormeqError, UsageError, reason
from normeq.models.noise_maps import TakesSigma
from normeq.nn import Normalized

#: How a denoiser follows a change of units; a function of the user keeps a law of its own.
Law = Literal["norm", "scale", "none", "own"]


def takes_sigma(denoiser: Callable[..., Any]) -> TakesSigma:
    """Tell whether a denoiser takes the noise level, by what it declares or by its parameters.

    A network of the user is told sigma only if it needs it: an optional second argument may be
    anything.

    Examples
    --------
    >>> takes_sigma(lambda image: image), takes_sigma(lambda image, sigma: image)
    ('never', 'always')
    >>> takes_sigma(lambda image, sigma=None: image)
    'optional'
    """
    if hasattr(denoiser, "takes_sigma"):
        declared: TakesSigma = denoiser.takes_sigma
        return declared
    if hasattr(denoiser, "blind"):
        return "never" if denoiser.blind else "always"
    network = denoiser if isinstance(denoiser, nn.Module) else None
    try:
        parameters = inspect.signature(denoiser if network is None else network.forward)
    except ValueError:  # compiled code does not show them
        return "optional"
    if not _binds(parameters, 2):
        return "never"
    if not _binds(parameters, 1):
        return "always"
    return "optional" if network is None else "never"


def _binds(parameters: inspect.Signature, count: int) -> bool:
    try:
        parameters.bind(*range(count))
    except TypeError:
        return False
    return True


def channels_of(denoiser: Callable[..., Any]) -> int:
    """Return how many channels of an image a denoiser sees at once: 1, or 3 for colour.

    Other numbers under the name ``channels`` count something else, such as a network's width.
    """
    return 3 if getattr(denoiser, "channels", 1) == 3 else 1


def declared_law(net: nn.Module) -> Law:
    """Return the law that a network declares, by an attribute or by its class."""
    default: Law = "norm" if isinstance(net, Normalized) else "none"
    declared: Law = getattr(net, "equivariance", default)
    return declared


def proven_law(net: nn.Module) -> Law:
    """Return the law that a network follows by proof: it may be a converted one, or the user's."""
    from normeq.certification import Status, certify

    try:
        certificate = certify(copy.deepcopy(net).eval())
    except NormeqError:
        return "none"
    if certificate.norm is Status.PROVEN:
        return "norm"
    return "scale" if certificate.scale is Status.PROVEN else "none"


def weights_digest(net: nn.Module) -> str:
    """Return the SHA-256 of a network's tensors and their names."""
    digest = hashlib.sha256()
    for name, tensor in net.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def find_device(name: str) -> torch.device:
    """Return a device by its name; ``"auto"`` takes CUDA, then Apple's MPS, then the processor."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"device {name!r} cannot be used: {reason(error)}.") from error
