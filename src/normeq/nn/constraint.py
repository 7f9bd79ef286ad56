"""Kernels that sum to a given total: one parametrization for every linear layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.utils import parametrize

from normeq.errors import UsageError

Method = Literal["project", "telescope"]
METHODS: tuple[Method, ...] = get_args(Method)


class KernelSum(nn.Module):
    """A parametrization: every kernel sums to `total` over its constrained coefficients.

    ``Σ kernel = total``, so a layer without bias maps ``λ·x + μ`` to ``λ·y + total·μ``.

    Parameters
    ----------
    total
        1 for affine combinations, 0 for differences.
    free_channels
        How many trailing input channels are left unconstrained (a noise map, say).
    method
        ``"project"`` subtracts the mean, an orthogonal projection and the best conditioned;
        ``"telescope"`` subtracts a kernel from its circular shift, as the paper does.
    input_axis
        The weight's axis of input channels: 1, or 0 for transposed convolutions.
    groups
        Groups of a transposed convolution, whose input channels share one axis.
    parts
        Into how many equal parts the constrained input channels fall, each of which sums to
        `total`: with total 0, each part may be offset by an amount of its own.

    Notes
    -----
    Use `constrain`, which works out input axis and groups for a given layer.
    """

    def __init__(
        self,
        total: float = 1.0,
        free_channels: int = 0,
        method: Method = "project",
        input_axis: int = 1,
        groups: int = 1,
        parts: int = 1,
    ) -> None:
        super().__init__()
        self.total = total
        self.free_channels = free_channels
        self.method = method
        self.input_axis = input_axis
        self.groups = groups
        self.parts = parts

    def forward(self, weight: Tensor) -> Tensor:
        """Return the constrained weight, in the memory layout of the given one."""
        constrained = self._on_kernels(weight, self._constrain)
        if not weight.is_contiguous() and weight.is_contiguous(memory_format=torch.channels_last):
            # A convolution writes its output in the layout of its weight.
            return constrained.contiguous(memory_format=torch.channels_last)
        return constrained

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Return parameters whose constrained weight is `weight`, projected onto the constraint."""
        return self._on_kernels(weight, self._unconstrain)

    def _on_kernels(self, weight: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a function to the constrained kernels, laid out as rows, and put them back."""
        if weight.is_meta:  # has a shape only; torch would import its compiler to compute it
            return weight
        kept = weight.shape[self.input_axis] - self.free_channels
        constrained = weight.narrow(self.input_axis, 0, kept)
        if self.input_axis == 1:  # (out, in, *kernel): one kernel for each output channel
            rows = constrained.flatten(1).unflatten(1, (self.parts, -1))
            projected = function(rows).reshape(constrained.shape)
        else:  # (in, out, *kernel): one kernel for each output channel and phase
            grouped = constrained.unflatten(0, (self.groups, -1)).movedim(1, -1)
            projected = function(grouped.contiguous()).movedim(-1, 1).flatten(0, 1)
        if not self.free_channels:
            return projected
        free = weight.narrow(self.input_axis, kept, self.free_channels)
        return torch.cat((projected, free), self.input_axis)

    def _constrain(self, rows: Tensor) -> Tensor:
        share = self.total / rows.shape[-1]
        if self.method == "project":
            return rows - (rows.mean(-1, keepdim=True) - share)
        return rows.roll(1, -1) - rows + share

    def _unconstrain(self, rows: Tensor) -> Tensor:
        zero_sum = rows - rows.mean(-1, keepdim=True)
        if self.method == "telescope":
            return -zero_sum.cumsum(-1)
        return zero_sum + self.total / rows.shape[-1]

    def extra_repr(self) -> str:
        """Describe the constraint in a printed network."""
        free = f", free_channels={self.free_channels}" if self.free_channels else ""
        parts = f", parts={self.parts}" if self.parts > 1 else ""
        return f"total={self.total:g}, method={self.method!r}{free}{parts}"


def constrain(
    layer: nn.Module,
    total: float = 1.0,
    *,
    free_channels: int = 0,
    method: Method = "project",
    parts: int = 1,
) -> nn.Module:
    """Make the kernels of a linear layer sum to `total`: ``layer(λ·x + μ) = λ·layer(x) + total·μ``.

    The layer is changed in place and returned. Its present weights are kept as far as the
    constraint allows (projected onto it), and any weight assigned later is projected likewise.

    Parameters
    ----------
    layer
        A `torch.nn.Linear`, a convolution, or a transposed convolution whose stride equals its
        kernel size; without bias and without zero padding.
    total, free_channels, method, parts
        See `KernelSum`.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> conv = constrain(nn.Conv1d(3, 5, 4, bias=False))
    >>> torch.allclose(conv.weight.sum((1, 2)), torch.ones(5), atol=1e-6)
    True
    """
    if not isinstance(layer, nn.Linear | _ConvNd):
        raise UsageError(
            f"{type(layer).__name__} has no kernel to constrain: use a Linear or a convolution."
        )
    name = type(layer).__name__
    if layer.bias is not None:
        raise UsageError(
            f"{name} has a bias, which no constraint can make up for: build it with bias=False."
        )
    if method not in METHODS:
        raise UsageError(f"method {method!r} is unknown: use one of {METHODS}.")
    transposed = isinstance(layer, _ConvTransposeNd)
    groups = layer.groups if isinstance(layer, _ConvNd) else 1
    channels = layer.in_channels if isinstance(layer, _ConvNd) else layer.in_features
    if not 0 <= free_channels < channels:
        raise UsageError(
            f"free_channels={free_channels} must leave one of the {channels} input channels."
        )
    if free_channels and groups > 1:
        raise UsageError(f"free_channels={free_channels} needs groups=1, not {groups}.")
    if parts > 1 and (transposed or groups > 1 or (channels - free_channels) % parts):
        raise UsageError(
            f"parts={parts} needs a layer without groups, not transposed, and must divide its "
            f"{channels - free_channels} constrained input channels."
        )
    if isinstance(layer, _ConvNd):
        _refuse_lossy_geometry(layer)
    parametrization = KernelSum(total, free_channels, method, 0 if transposed else 1, groups, parts)
    parametrize.register_parametrization(layer, "weight", parametrization)
    _let_pickle(layer)
    return layer


def _let_pickle(layer: nn.Module) -> None:
    """Let `torch.save` write a whole constrained layer: torch refuses the class it gave to it."""
    type(layer).__reduce_ex__ = _reduced  # type: ignore[assignment,method-assign]


def _reduced(layer: nn.Module, protocol: int) -> tuple[Any, ...]:
    return _restored, (parametrize.type_before_parametrizations(layer), layer.__dict__.copy())


def _restored(kind: type[nn.Module], state: dict[str, Any]) -> nn.Module:
    """Build a pickled layer again: its tensors and the class that computes its weight."""
    layer = kind.__new__(kind)
    layer.__setstate__(state)
    parametrize._inject_new_class(layer)
    for name in layer.parametrizations:  # type: ignore[union-attr]
        parametrize._inject_property(layer, name)
    _let_pickle(layer)
    return layer


def _refuse_lossy_geometry(layer: _ConvNd) -> None:
    """Refuse geometries in which some output pixels would see only a part of their kernel."""
    name = type(layer).__name__
    if isinstance(layer, _ConvTransposeNd):
        dilated = any(dilation != 1 for dilation in layer.dilation)
        cropped = any(layer.padding) or any(layer.output_padding)
        if layer.stride != layer.kernel_size or dilated or cropped:
            raise UsageError(
                f"{name} with kernel {layer.kernel_size}, stride {layer.stride} and padding "
                f"{layer.padding} overlaps or crops its kernels: only stride = kernel size "
                "without padding or dilation can be constrained."
            )
    elif layer.padding_mode == "zeros" and any(conv_padding(layer)):
        raise UsageError(
            f"{name} pads with zeros, which do not shift: use a padding_mode that copies "
            "('reflect', 'replicate' or 'circular')."
        )


def conv_padding(layer: _ConvNd) -> list[int]:
    """Amounts of padding before and after each axis, also where they were given by name."""
    amounts: list[int] = layer._reversed_padding_repeated_twice
    return amounts


@torch.no_grad()
def init_spread_(layer: nn.Module, gain: float = 1.0) -> None:
    """Draw constrained kernels whose zero-sum part has variance ``gain²/n``.

    With gain 1 the spread of equivariant features neither grows nor fades through depth.
    """
    weight: Tensor = layer.weight  # type: ignore[assignment]
    if weight.is_meta:  # nothing to draw
        return
    (constraint,) = layer.parametrizations["weight"]  # type: ignore[index]
    assert isinstance(constraint, KernelSum)
    if constraint.input_axis == 1:
        inputs = weight[0].numel()
    else:
        inputs = weight.shape[0] // constraint.groups
    layer.weight = torch.randn_like(weight) * (gain / math.sqrt(inputs))
