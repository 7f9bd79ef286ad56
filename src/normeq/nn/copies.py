"""Private copies of networks, also of those that torch's own copy refuses."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.utils import parametrize, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.utils._pytree import tree_map

from normeq.errors import UsageError, reason
from normeq.nn.own_source import located

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def private_copy(net: ModuleT, share: dict[int, Any] | None = None) -> ModuleT:
    """Return a deep copy of a network.

    Tensors that a network keeps from its last call, which torch refuses to copy because they carry
    gradients, are copied without them.

    Parameters
    ----------
    net
        Any network.
    share
        What the copy shares with the network, by identity.

    Examples
    --------
    >>> import warnings
    >>> from torch import nn
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     net = nn.utils.weight_norm(nn.Conv2d(1, 2, 3))
    >>> private_copy(net).weight.shape
    torch.Size([2, 1, 3, 3])
    """
    memo = dict(share or {})
    for module in net.modules():
        for value in vars(module).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                memo.setdefault(id(value), value.detach().clone())
    try:
        return copy.deepcopy(net, memo)
    except Exception as error:
        raise UsageError(
            f"{located(net)} cannot be copied ({reason(error)}), and only copies are worked "
            "on: keep what cannot be copied out of its attributes."
        ) from error


def fresh(args: Sequence[Any]) -> list[Any]:
    """Return copies of arguments, for a network that may change them in place.

    Examples
    --------
    >>> import torch
    >>> image = torch.ones(1)
    >>> fresh([image])[0].add_(1), image
    (tensor([2.]), tensor([1.]))
    """
    copied: list[Any] = tree_map(
        lambda part: part.clone() if isinstance(part, Tensor) else part, list(args)
    )
    return copied


def bake_hooked_norms(net: nn.Module) -> list[str]:
    """Replace weights that a hook computes before each call by their values; return their paths.

    These are the older forms of weight norm and spectral norm, ``torch.nn.utils.weight_norm`` and
    ``torch.nn.utils.spectral_norm``.
    """
    baked = []
    for path, module in net.named_modules():
        for hook in list(module._forward_pre_hooks.values()):
            if isinstance(hook, WeightNorm):
                remove_weight_norm(module, hook.name)
            elif isinstance(hook, SpectralNorm):
                remove_spectral_norm(module, hook.name)
            else:
                continue
            baked.append(path)
    return baked


def bake_weights(net: nn.Module) -> None:
    """Replace all weights that are computed from others by their values.

    Examples
    --------
    >>> from normeq.nn import AffineConv2d
    >>> conv = AffineConv2d(1, 2, 3)
    >>> bake_weights(conv)
    >>> [name for name, _ in conv.named_parameters()]
    ['weight']
    """
    bake_hooked_norms(net)
    for module in list(net.modules()):
        _bake_parametrizations(module)


def _bake_parametrizations(module: nn.Module) -> None:
    """Replace parametrized tensors by their values.

    Unlike `torch.nn.utils.parametrize.remove_parametrizations`, which changes the class that a
    module shares with its copies.
    """
    if not parametrize.is_parametrized(module):
        return
    names = list(module.parametrizations)  # type: ignore[arg-type]
    values = {name: getattr(module, name) for name in names}
    module.__class__ = parametrize.type_before_parametrizations(module)
    del module.parametrizations
    for name, value in values.items():
        module.register_parameter(name, nn.Parameter(value, requires_grad=False))
