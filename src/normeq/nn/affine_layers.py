"""Linear layers of affine combinations, whose kernels sum to one, and of differences."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.nn.constraint import Method, constrain, conv_padding, init_spread_
from normeq.nn.padding import CopyMode, copy_pad


class _CopyPaddedConv2d(nn.Conv2d):
    """A convolution without bias whose padding copies existing values at every size."""

    _total: float

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | Literal["same", "valid"] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        *,
        padding_mode: CopyMode = "reflect",
        free_channels: int = 0,
        method: Method = "project",
        parts: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias=False,
            padding_mode=padding_mode,
            device=device,
            dtype=dtype,
        )
        constrain(self, self._total, free_channels=free_channels, method=method, parts=parts)
        init_spread_(self)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        mode: Any = self.padding_mode
        padded = copy_pad(input, conv_padding(self), mode)
        return F.conv2d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


class AffineConv2d(_CopyPaddedConv2d):
    """A convolution by affine combinations: ``conv(λ·x + μ) = λ·conv(x) + μ``.

    Every kernel sums to one, there is no bias, and padding copies existing values.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, device, dtype
        As in `torch.nn.Conv2d`.
    padding_mode
        ``"reflect"``, ``"replicate"`` or ``"circular"``; see `copy_pad`.
    free_channels
        Trailing input channels whose coefficients are unconstrained: a noise map, which scales
        with the image but does not shift with it.
    method
        How kernels are parametrized; see `KernelSum`.

    Examples
    --------
    >>> import torch
    >>> conv = AffineConv2d(1, 4, 3, padding=1).double()
    >>> x = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    >>> torch.allclose(conv(7 * x + 1000), 7 * conv(x) + 1000)
    True
    """

    _total = 1.0


class ZeroSumConv2d(_CopyPaddedConv2d):
    """A convolution by differences: ``conv(λ·x + μ) = λ·conv(x)``.

    Every kernel sums to zero, there is no bias, and padding copies existing values. Its output
    no longer shifts with the image, so anything homogeneous may follow: plain bias-free
    convolutions, zero padding, ReLU. Parameters are those of `AffineConv2d`; with ``parts=3``
    the kernels sum to zero over each colour, which may then have an offset of its own.

    Examples
    --------
    >>> import torch
    >>> conv = ZeroSumConv2d(1, 4, 3, padding=1).double()
    >>> x = torch.rand(1, 1, 8, 8, dtype=torch.float64)
    >>> torch.allclose(conv(7 * x + 1000), 7 * conv(x))
    True
    """

    _total = 0.0


class AffineConvTranspose2d(nn.ConvTranspose2d):
    """Upsampling by affine combinations: ``up(λ·x + μ) = λ·up(x) + μ``.

    Stride equals kernel size, so that each output pixel is one affine combination of the
    channels of one input pixel: a 1x1 affine convolution followed by a pixel shuffle.

    Parameters
    ----------
    in_channels, out_channels, groups, device, dtype
        As in `torch.nn.ConvTranspose2d`.
    kernel_size
        Also the stride: the factor of the upsampling.
    method
        How kernels are parametrized; see `KernelSum`.

    Examples
    --------
    >>> import torch
    >>> up = AffineConvTranspose2d(4, 2, 2).double()
    >>> x = torch.rand(1, 4, 3, 3, dtype=torch.float64)
    >>> up(x).shape
    torch.Size([1, 2, 6, 6])
    >>> torch.allclose(up(7 * x + 1000), 7 * up(x) + 1000)
    True
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        groups: int = 1,
        *,
        method: Method = "project",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride=kernel_size,
            groups=groups,
            bias=False,
            device=device,
            dtype=dtype,
        )
        constrain(self, method=method)
        init_spread_(self)


class AffineLinear(nn.Linear):
    """A dense layer of affine combinations: ``linear(λ·x + μ) = λ·linear(x) + μ``.

    Parameters
    ----------
    in_features, out_features, device, dtype
        As in `torch.nn.Linear`.
    free_channels
        Trailing input features whose coefficients are unconstrained.
    method
        How rows are parametrized; see `KernelSum`.

    Examples
    --------
    >>> import torch
    >>> linear = AffineLinear(6, 3).double()
    >>> x = torch.rand(2, 6, dtype=torch.float64)
    >>> torch.allclose(linear(7 * x + 1000), 7 * linear(x) + 1000)
    True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        free_channels: int = 0,
        method: Method = "project",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias=False, device=device, dtype=dtype)
        constrain(self, free_channels=free_channels, method=method)
        init_spread_(self)
