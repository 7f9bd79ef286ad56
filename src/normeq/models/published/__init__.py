"""Weights that other projects published, read into the networks of the registry."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from normeq.errors import FileError, UsageError, WeightsError
from normeq.models.building_blocks import Variant
from normeq.models.network import Network, Wrapped
from normeq.models.published.format import PublishedFormat
from normeq.models.published.kair import KairFormat
from normeq.models.published.paper import PaperFormat
from normeq.models.published.state_dict import StateDict
from normeq.models.registry import create
from normeq.models.weights import refuse_not_finite
from normeq.nn import AffineResidual

__all__ = ["FORMATS", "import_weights", "read_state_dict"]

FORMATS: dict[str, PublishedFormat] = {"kair": KairFormat(), "paper": PaperFormat()}


def import_weights(
    state_dict: Mapping[str, Tensor], layout: str, variant: Variant | None = None
) -> Network | Wrapped:
    """Build the network that computes the very function of published weights.

    ``imported(x) = source(x)`` for images whose height and width are multiples of its stride.

    Parameters
    ----------
    state_dict
        The tensors, as `read_state_dict` gives them.
    layout
        ``"paper"``: FDnCNN and DRUNet in the three variants of the paper on
        normalization-equivariant networks. ``"kair"``: DnCNN, FDnCNN, FFDNet and DRUNet of the
        KAIR and DPIR collections.
    variant
        Only needed where tensors cannot tell: the paper's FDnCNN without biases is either
        scale-equiv or norm-equiv.

    Examples
    --------
    >>> import torch
    >>> tensors = {
    ...     "model.0.weight": torch.rand(8, 2, 3, 3), "model.0.bias": torch.rand(8),
    ...     "model.2.weight": torch.rand(1, 8, 3, 3), "model.2.bias": torch.rand(1),
    ... }
    >>> net = import_weights(tensors, "kair")
    >>> net.architecture, net.variant, net.blind
    ('fdncnn', 'ordinary', False)
    """
    if layout not in FORMATS:
        raise UsageError(f"layout {layout!r} is unknown: use one of {', '.join(FORMATS)}.")
    source = FORMATS[layout]
    tensors = StateDict(state_dict, layout)
    architecture, options = source.recognise(tensors, variant)
    net = create(architecture, **options).to(tensors.dtype)
    scales = len(options.get("widths", ()))
    for name, layer in net.named_modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            _fill(layer, source.source_name(name, scales), source, tensors)
        elif isinstance(layer, AffineResidual):
            # The source weighs the first branch by alpha, we weigh the second by t.
            alpha = tensors.take(f"{source.source_name(name, scales)}.alpha")
            layer.t.data.copy_(1 - alpha.reshape(()))
    tensors.expect_empty()
    return net.eval()


@torch.no_grad()
def _fill(
    layer: nn.Conv2d | nn.ConvTranspose2d, name: str, source: PublishedFormat, tensors: StateDict
) -> None:
    """Give a convolution the kernel and the bias of the source, whose missing biases are zero."""
    kernel = source.kernel(tensors, name, layer)
    if kernel.shape != layer.weight.shape:
        raise WeightsError(
            f"key '{name}.weight' makes a kernel of shape {tuple(kernel.shape)}, where the rest of "
            f"the file calls for {tuple(layer.weight.shape)}."
        )
    if parametrize.is_parametrized(layer, "weight"):
        layer.weight = kernel
    else:
        layer.weight.copy_(kernel)
    if layer.bias is not None:
        layer.bias.zero_()
        if f"{name}.bias" in tensors:
            layer.bias.copy_(tensors.take(f"{name}.bias"))


def read_state_dict(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read the tensors of a ``.pth`` file; one that would run code is refused.

    Parameters
    ----------
    path
        A file written by ``torch.save(net.state_dict(), path)``.
    """
    content = _unpickled(path)
    if not isinstance(content, Mapping) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in content.items()
    ):
        raise WeightsError(f"{path} contains no state dict: tensors by name, and nothing else.")
    for name, tensor in content.items():
        if tensor.is_complex() or tensor.is_quantized or tensor.layout != torch.strided:
            raise WeightsError(
                f"{path} contains the tensor '{name}' of type {tensor.dtype}: only dense tensors "
                "of real numbers are read; convert it first."
            )
        refuse_not_finite(name, tensor)
    return dict(content)


def _unpickled(path: str | os.PathLike[str]) -> Any:
    """Read what `torch.save` wrote, but nothing that would run code."""
    if not Path(path).is_file():
        raise FileError(f"cannot read {path}: it is not a file.")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error
    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise WeightsError(
            f"{path} contains more than tensors, or is damaged; nothing else is ever unpickled."
        ) from error
    # What the unpickler raises on bytes that are not a pickle.
    except (RuntimeError, EOFError, OSError, ValueError, LookupError, TypeError) as error:
        raise WeightsError(f"{path} is not a complete torch.save file.") from error
