"""Every network of the registry in a tiny size, for tests that run over all of them."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from normeq.models import Network, Wrapped, create, names, variants

TINY: dict[str, dict[str, Any]] = {
    "drunet": {"widths": (4, 6), "blocks": 1},
    "fdncnn": {"width": 6, "depth": 4},
    "ffdnet": {"width": 6, "depth": 4},
    "unet": {"widths": (4, 6), "blocks": 1},
    "vgg8b": {"widths": (4, 4, 6, 6, 6, 6), "hidden": 24, "image_size": 20},
}
_UNSIZED = set(names()) - TINY.keys()
if _UNSIZED:
    raise LookupError(f"give {', '.join(sorted(_UNSIZED))} a tiny size in TINY, in {__file__}")

DENOISERS = [name for name in names() if name != "vgg8b"]
#: Every network, variant, blindness and nonlinearity, as keyword arguments of `create`.
EVERY_NETWORK: list[dict[str, Any]] = [
    {"name": name, "variant": variant, **blindness}
    for name in names()
    for variant, blindness in itertools.product(
        variants(name), [{"blind": True}, {"blind": False}] if name in DENOISERS else [{}]
    )
] + [
    {"name": "unet", "variant": variant, "blind": True, "sort": True}
    for variant in variants("unet")
    if variant != "norm-equiv"
]
#: The same denoisers, told everything about the noise, or nothing.
EVERY_TOLD_NETWORK: list[dict[str, Any]] = [
    {"name": name, "variant": variant, "takes_sigma": "optional", "takes_correlation": True}
    for name in DENOISERS
    for variant in variants(name)
]


def describe(options: dict[str, Any]) -> str:
    """Name a parametrized network."""
    blind = {True: "-blind", False: "-sigma", None: ""}[options.get("blind")]
    blind += "-maps" * options.get("takes_correlation", False)
    return f"{options['name']}-{options['variant']}{blind}{'-sort' * options.get('sort', False)}"


def tiny(name: str, variant: str = "norm-equiv", **options: Any) -> Network | Wrapped:
    """Build a tiny network whose biases and norm parameters are random too.

    A property that only holds while biases are zero then shows as missing.
    """
    net = create(name, variant, **TINY[name] | options)
    with torch.no_grad():
        for path, parameter in net.named_parameters():
            if "bias" in path or parameter.ndim <= 1:
                parameter.add_(0.3 * torch.rand_like(parameter))
        for path, buffer in net.named_buffers():
            if "running" in path:
                buffer.add_(torch.rand_like(buffer))
    return net.eval()
