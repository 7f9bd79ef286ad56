from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from normeq.errors import UsageError
from normeq.nn import (
    AffineConv2d,
    AffineConvTranspose2d,
    AffineLinear,
    SortPool,
    ZeroSumConv2d,
    constrain,
)
from normeq.nn.constraint import METHODS

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(6, 4, bias=False), (2, 6)),
    "conv1d": (lambda: nn.Conv1d(6, 4, 3, bias=False), (2, 6, 7)),
    "conv2d": (lambda: nn.Conv2d(6, 4, 3, dilation=2, bias=False), (2, 6, 7, 8)),
    "conv3d": (lambda: nn.Conv3d(6, 4, (1, 2, 3), bias=False), (2, 6, 4, 5, 6)),
    "grouped": (lambda: nn.Conv2d(6, 4, 3, groups=2, bias=False), (2, 6, 5, 5)),
    "strided": (lambda: nn.Conv2d(6, 4, 2, stride=2, bias=False), (2, 6, 6, 6)),
    "circular": (
        lambda: nn.Conv2d(6, 4, 3, padding="same", padding_mode="circular", bias=False),
        (2, 6, 6, 6),
    ),
    "transposed1d": (lambda: nn.ConvTranspose1d(6, 4, 2, stride=2, bias=False), (2, 6, 5)),
    "transposed2d": (lambda: nn.ConvTranspose2d(6, 4, 2, stride=2, bias=False), (2, 6, 5, 5)),
    "transposed-grouped": (
        lambda: nn.ConvTranspose2d(6, 4, 3, stride=3, groups=2, bias=False),
        (2, 6, 3, 3),
    ),
    "transposed3d": (lambda: nn.ConvTranspose3d(6, 2, 2, stride=2, bias=False), (1, 6, 2, 2, 2)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("total", [0.0, 1.0, -2.5])
@pytest.mark.parametrize("name", LAYERS)
def test_an_offset_comes_out_times_the_total(name: str, total: float, method: str) -> None:
    make, shape = LAYERS[name]
    layer = constrain(make().double(), total, method=method)
    x = torch.rand(shape, dtype=torch.float64)
    torch.testing.assert_close(layer(3 * x + 50), 3 * layer(x) + 50 * total)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LAYERS)
def test_the_constraint_survives_training_steps(name: str, method: str) -> None:
    make, shape = LAYERS[name]
    layer = constrain(make().double(), method=method)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.rand(shape, dtype=torch.float64)).square().mean().backward()
        optimizer.step()
    ones = torch.ones(shape, dtype=torch.float64)
    output = layer(ones)
    torch.testing.assert_close(output, torch.ones_like(output))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LAYERS)
def test_an_assigned_kernel_is_projected_once(name: str, method: str) -> None:
    make, _ = LAYERS[name]
    layer = constrain(make().double(), method=method)
    layer.weight = torch.rand_like(layer.weight)
    kernel = layer.weight.detach().clone()
    layer.weight = kernel
    torch.testing.assert_close(layer.weight, kernel)


def test_projection_moves_a_kernel_no_further_than_needed() -> None:
    layer = nn.Conv2d(3, 4, 3, bias=False).double()
    before = layer.weight.detach().clone()
    moved = constrain(layer).weight - before
    # Orthogonal to the constraint: the same amount on every coefficient of a kernel.
    torch.testing.assert_close(moved, moved.mean((1, 2, 3), keepdim=True).expand_as(moved))


@pytest.mark.parametrize("method", METHODS)
def test_free_channels_are_left_alone(method: str) -> None:
    layer = nn.Conv2d(3, 4, 3, bias=False).double()
    noise_kernels = layer.weight[:, 2:].detach().clone()
    constrain(layer, free_channels=1, method=method)
    assert torch.equal(layer.weight[:, 2:], noise_kernels)
    x, sigma = torch.rand(2, 2, 5, 5).double(), torch.rand(2, 1, 5, 5).double()
    shifted = layer(torch.cat((7 * x + 100, 7 * sigma), 1))
    torch.testing.assert_close(shifted, 7 * layer(torch.cat((x, sigma), 1)) + 100)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_features_have_the_memory_layout_of_the_weight(layout: torch.memory_format) -> None:
    conv = ZeroSumConv2d(4, 8, 3, padding=1, free_channels=2).to(memory_format=layout)  # type: ignore[call-overload]
    assert conv(torch.rand(2, 4, 5, 6)).is_contiguous(memory_format=layout)


@pytest.mark.parametrize(
    ("layer", "options", "sentence"),
    [
        (nn.ReLU(), {}, "ReLU has no kernel"),
        (nn.Linear(2, 2), {}, "has a bias"),
        (nn.Conv2d(2, 2, 3, padding=1, bias=False), {}, "pads with zeros"),
        (nn.Conv2d(2, 2, 3, padding="same", bias=False), {}, "pads with zeros"),
        (nn.ConvTranspose2d(2, 2, 3, stride=2, bias=False), {}, "overlaps or crops"),
        (nn.ConvTranspose2d(2, 2, 2, stride=2, padding=1, bias=False), {}, "overlaps or crops"),
        (nn.Conv2d(2, 2, 3, padding=1, bias=False), {"total": 0.0}, "pads with zeros"),
        (nn.Linear(2, 2, bias=False), {"free_channels": 2}, "free_channels=2"),
        (nn.Conv2d(4, 2, 1, groups=2, bias=False), {"free_channels": 1}, "groups=1"),
        (nn.Linear(2, 2, bias=False), {"method": "divide"}, "'divide' is unknown"),
    ],
)
def test_what_cannot_be_constrained_is_refused(
    layer: nn.Module, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        constrain(layer, **options)


@given(height=st.integers(1, 6), width=st.integers(1, 6), kernel=st.integers(1, 7))
def test_affine_convolution_at_every_size(height: int, width: int, kernel: int) -> None:
    conv = AffineConv2d(2, 3, kernel, padding=kernel // 2).double()
    x = torch.rand(1, 2, height, width, dtype=torch.float64)
    torch.testing.assert_close(conv(7 * x - 1000), 7 * conv(x) - 1000)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_large_images_are_padded_as_torch_does(mode: str) -> None:
    conv = AffineConv2d(2, 3, 3, padding=1, padding_mode=mode)
    plain = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode, bias=False)
    plain.weight = nn.Parameter(conv.weight.detach())
    x = torch.rand(1, 2, 6, 7)
    torch.testing.assert_close(conv(x), plain(x))


@pytest.mark.parametrize(
    ("layer", "shape", "total"),
    [
        (AffineConv2d(3, 4, 3, stride=2, padding=1, padding_mode="replicate"), (2, 3, 7, 7), 1),
        (AffineConv2d(4, 4, 3, padding="same", groups=2, method="telescope"), (2, 4, 7, 7), 1),
        (AffineConvTranspose2d(3, 4, 3), (2, 3, 4, 4), 1),
        (AffineLinear(5, 3, method="telescope"), (2, 5), 1),
        (ZeroSumConv2d(3, 4, 3, padding=1, padding_mode="circular"), (2, 3, 7, 7), 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_thin_classes_keep_their_guarantee(
    layer: nn.Module, shape: tuple[int, ...], total: int, dtype: torch.dtype
) -> None:
    layer = copy.deepcopy(layer).to(dtype)
    x = torch.rand(shape, dtype=dtype, requires_grad=True)
    output = layer(3 * x + 10)
    torch.testing.assert_close(output, 3 * layer(x) + 10 * total, rtol=1e-4, atol=1e-4)
    output.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_the_spread_of_features_neither_grows_nor_fades_through_depth() -> None:
    layers: list[nn.Module] = []
    for _ in range(20):
        layers += [AffineConv2d(64, 64, 3, padding=1), SortPool()]
    x = torch.randn(1, 64, 24, 24)

    assert 0.5 < nn.Sequential(*layers)(x).std() / x.std() < 2
