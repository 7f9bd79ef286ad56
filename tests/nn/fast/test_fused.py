from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from normeq.nn import SortPool, copy_pad
from normeq.nn.fast.fused import add_scaled, add_scaled_pad, give_means, sort_pad, take_means
from normeq.nn.padding import _pad

modes = st.sampled_from(["reflect", "replicate", "circular"])
sizes = st.integers(1, 4)
amounts = st.tuples(*[st.integers(0, 3)] * 4)


def means(x: Tensor) -> Tensor:
    first, second = x[:, ::2], x[:, 1::2]
    return torch.cat(((first + second) / 2, (second - first) / 2), 1)


@given(height=sizes, width=sizes, pads=amounts, mode=modes)
def test_sort_pad_sorts_pairs_and_pads(height: int, width: int, pads: Any, mode: Any) -> None:
    x = torch.rand(2, 6, height, width, dtype=torch.float64)
    expected = means(copy_pad(SortPool()(x), pads, mode))
    torch.testing.assert_close(sort_pad(means(x), pads, mode), expected)


@given(height=sizes, width=sizes, pads=amounts, mode=modes)
def test_gradients_are_exact(height: int, width: int, pads: Any, mode: Any) -> None:
    x = torch.randn(1, 4, height, width, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: sort_pad(x, pads, mode), x)
    torch.autograd.gradcheck(lambda x: copy_pad(x, pads, mode), x)


# torch warns of its own use of torch.jit.script when forward mode is loaded.
forward_mode = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


@forward_mode
@pytest.mark.parametrize("function", [sort_pad, copy_pad])
def test_second_gradients_and_forward_mode(function: Any) -> None:
    x = torch.randn(1, 4, 4, 3, dtype=torch.float64, requires_grad=True)

    def squared(x: Tensor) -> Tensor:
        return function(x, (1, 1, 2, 0), "reflect").square()

    torch.autograd.gradcheck(squared, x, check_forward_ad=True)
    torch.autograd.gradgradcheck(squared, x)


@forward_mode
@pytest.mark.parametrize("function", [sort_pad, copy_pad])
def test_jacobians_of_torch_func(function: Any) -> None:
    x = torch.randn(1, 2, 3, 3, dtype=torch.float64)

    def padded(x: Tensor) -> Tensor:
        return function(x, (1, 1, 1, 1), "reflect")

    expected = torch.autograd.functional.jacobian(padded, x)
    torch.testing.assert_close(torch.func.jacrev(padded)(x), expected)
    torch.testing.assert_close(torch.func.jacfwd(padded)(x), expected)


@given(size=st.lists(sizes, min_size=1, max_size=3), pad=st.integers(0, 3), mode=modes)
def test_the_gradient_of_padding_is_that_of_torch(size: list[int], pad: int, mode: Any) -> None:
    x = torch.rand(2, 3, *size, dtype=torch.float64, requires_grad=True)
    pads = [pad] * (2 * len(size))
    reference = _pad(x, pads, mode)
    weights = torch.rand_like(reference)
    (expected,) = torch.autograd.grad((weights * reference).sum(), x)
    (gradient,) = torch.autograd.grad((weights * copy_pad(x, pads, mode)).sum(), x)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("function", [sort_pad, copy_pad])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_memory_layout_is_kept(function: Any, layout: torch.memory_format) -> None:
    x = torch.rand(2, 4, 5, 6).contiguous(memory_format=layout).requires_grad_()
    out = function(x, (1, 1, 1, 1), "reflect")
    assert out.is_contiguous(memory_format=layout)
    (gradient,) = torch.autograd.grad(out, x, torch.ones_like(out))
    assert gradient.is_contiguous(memory_format=layout)


def test_equal_values_share_their_gradient() -> None:
    pair = torch.ones(1, 2, 1, 1, requires_grad=True)
    weights = torch.tensor([1.0, 3.0]).reshape(1, 2, 1, 1)
    take = take_means(weights)
    give = give_means(torch.eye(2).reshape(2, 2, 1, 1))
    sort_pad(torch.conv2d(pair, give), (), "reflect").mul(take).sum().backward()
    assert pair.grad is not None
    assert pair.grad.flatten().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_adding_a_scaled_tensor(layout: torch.memory_format) -> None:
    x, other = (
        torch.randn(2, 3, 4, 2, dtype=torch.float64).contiguous(memory_format=layout)
        for _ in range(2)
    )
    scale = torch.tensor(0.3, dtype=torch.float64)
    assert torch.equal(add_scaled(x, other, scale), torch.addcmul(x, other, scale))
    inputs = [tensor.requires_grad_() for tensor in (x, other, scale)]
    torch.autograd.gradcheck(add_scaled, inputs)
    torch.autograd.gradgradcheck(add_scaled, inputs)


@given(height=sizes, width=sizes, pads=amounts, mode=modes)
def test_adding_into_a_padded_tensor(height: int, width: int, pads: Any, mode: Any) -> None:
    x, other = torch.rand(2, 2, 3, height, width, dtype=torch.float64)
    scale = torch.tensor(0.3, dtype=torch.float64)
    padded, bare = add_scaled_pad(x, other, scale, pads, mode)
    torch.testing.assert_close(bare, x + 0.3 * other)
    assert torch.equal(padded, copy_pad(bare, pads, mode))
    tracked, _ = add_scaled_pad(x, other, scale.requires_grad_(), pads, mode)
    assert torch.equal(tracked, padded)
