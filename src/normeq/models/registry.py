"""Networks by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from normeq.errors import UsageError
from normeq.models.building_blocks import VARIANTS, Variant
from normeq.models.denoising_network import DenoisingNetwork, WrappedDenoisingNetwork
from normeq.models.drunet import DRUNet
from normeq.models.fdncnn import FDnCNN
from normeq.models.ffdnet import FFDNet
from normeq.models.network import Network, Wrapped
from normeq.models.noise_maps import takes_sigma_of
from normeq.models.sizes import check_sizes
from normeq.models.unet import UNet
from normeq.models.vgg8b import VGG8b

_ARCHITECTURES: dict[str, Callable[..., Network]] = {
    network.architecture: network for network in (DRUNet, FDnCNN, FFDNet, UNet, VGG8b)
}


def names() -> list[str]:
    """List the networks that `create` builds.

    Examples
    --------
    >>> "drunet" in names()
    True
    """
    return sorted(_ARCHITECTURES)


def register(network: type[Network]) -> None:
    """Let `create`, and with it recipes of training, build a network of your own.

    Parameters
    ----------
    network
        A class that is called as those of this package: with the variant first, then sizes by
        name. Its `architecture` is the name it is built by.

    Examples
    --------
    >>> class Shallow(UNet):
    ...     architecture = "shallow"
    ...
    ...     def __init__(self, variant, *, width=8, **shared):
    ...         super().__init__(variant, widths=(width,), blocks=1, **shared)
    >>> register(Shallow)
    >>> create("shallow", "norm-equiv-residual", width=4).receptive_field
    9
    >>> del _ARCHITECTURES["shallow"]  # for the sake of other examples
    """
    taken = _ARCHITECTURES.get(network.architecture, network)
    if taken is not network:
        raise UsageError(f"network {network.architecture!r} exists already: use another name.")
    _ARCHITECTURES[network.architecture] = network


def variants(name: str) -> list[Variant]:
    """List the variants of a network.

    Examples
    --------
    >>> variants("vgg8b")
    ['ordinary', 'scale-equiv', 'norm-equiv', 'norm-equiv-wrapped']
    """
    image_to_image = issubclass(_architecture(name), DenoisingNetwork)  # type: ignore[arg-type]
    return [v for v in VARIANTS if image_to_image or v != "norm-equiv-residual"]


def create(name: str, variant: Variant = "norm-equiv", **options: Any) -> Network | Wrapped:
    """Build a network with fresh weights.

    Parameters
    ----------
    name
        One of `names`.
    variant
        ``"ordinary"``, ``"scale-equiv"``, ``"norm-equiv"`` (the paper's affine form),
        ``"norm-equiv-residual"`` (``y + g(Dy)``) or ``"norm-equiv-wrapped"``.
    **options
        Arguments of the network: for denoisers ``channels``, ``takes_sigma`` ("never",
        "optional" or "always"; ``blind=True`` and ``blind=False`` are short for the first and
        the last) and ``takes_correlation``; and sizes.

    Examples
    --------
    >>> import torch
    >>> net = create("fdncnn", "norm-equiv", width=8, depth=3).double()
    >>> y = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    >>> torch.allclose(net(7 * y + 1000), 7 * net(y) + 1000)
    True
    """
    architecture = _architecture(name)
    if variant not in VARIANTS:
        raise UsageError(f"variant {variant!r} is unknown: use one of {', '.join(VARIANTS)}.")
    known = _defaults(architecture)
    if "takes_sigma" in known and "blind" in options:
        if "takes_sigma" in options:
            raise UsageError("blind and takes_sigma mean the same: pass only one.")
        options["takes_sigma"] = takes_sigma_of(options.pop("blind"))
    unknown = [option for option in options if option not in known]
    if unknown:
        raise UsageError(f"{name} has no option {unknown[0]!r}: it has {', '.join(known)}.")
    check_sizes(options)
    network: Network | Wrapped
    if variant == "norm-equiv-wrapped":
        inner = architecture("ordinary", **options)
        network = (
            WrappedDenoisingNetwork(inner)
            if isinstance(inner, DenoisingNetwork)
            else Wrapped(inner)
        )
    else:
        network = architecture(variant, **options)
    network.config = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in {"variant": variant, **known, **options}.items()
    }
    return network


def _defaults(architecture: Callable[..., Network]) -> dict[str, Any]:
    """Return the options of a network and their defaults, those that all denoisers share first."""
    parameters = [*inspect.signature(architecture).parameters.values()]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        parameters = [*inspect.signature(DenoisingNetwork).parameters.values(), *parameters]
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


def _architecture(name: str) -> Callable[..., Network]:
    if name not in _ARCHITECTURES:
        raise UsageError(f"network {name!r} is unknown: use one of {', '.join(names())}.")
    return _ARCHITECTURES[name]
