from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from normeq.nn import AffineConv2d
from normeq.training.muon import Muon, is_matrix, orthogonalized


@given(rows=st.integers(1, 40), columns=st.integers(1, 40), seed=st.integers(0, 99))
def test_singular_values_go_to_one_and_their_vectors_stay(rows, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    rank = min(rows, columns)
    left, _ = torch.linalg.qr(torch.randn(rows, rank, generator=generator, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(columns, rank, generator=generator, dtype=torch.float64))
    values = torch.logspace(0, -1.5, rank, dtype=torch.float64)
    result = left.T @ orthogonalized(left * values @ right.T) @ right
    off_diagonal = result - torch.diag(result.diagonal())
    assert off_diagonal.abs().max() < 1e-9
    assert result.diagonal().min() > 0.5
    assert result.diagonal().max() < 1.3


def test_float32_is_precise_enough_for_an_ill_conditioned_gradient():
    matrix = torch.randn(64, 576) * torch.logspace(0, -4, 576)
    exact = orthogonalized(matrix.double())
    assert (orthogonalized(matrix) - exact).norm() < 1e-2 * exact.norm()


def test_no_gradient_no_step():
    assert torch.equal(orthogonalized(torch.zeros(3, 5)), torch.zeros(3, 5))


@given(exponent=st.floats(-44, -8))
def test_gradients_whose_squares_vanish_make_no_wild_step(exponent):
    # What the running mean leaves of a kernel behind dead units.
    matrix = torch.randn(64, 576, generator=torch.Generator().manual_seed(0)) * 10**exponent
    assert torch.linalg.matrix_norm(orthogonalized(matrix), 2) < 1.3


@given(gain=st.floats(1e-6, 1e6))
def test_the_length_of_the_gradient_does_not_matter(gain):
    matrix = torch.randn(16, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(orthogonalized(gain * matrix), orthogonalized(matrix))


def test_steps_are_as_long_as_the_rate_says():
    for shape in (16, 16, 3, 3), (64, 16, 1, 1):
        kernel = nn.Parameter(torch.zeros(shape))
        kernel.grad = torch.randn(shape)
        Muon([kernel], lr=0.01).step()
        assert float(kernel.detach().square().mean().sqrt()) == pytest.approx(0.01 * 0.2, rel=0.4)


def test_a_kernel_that_sums_to_one_takes_steps_that_sum_to_zero():
    layer = AffineConv2d(16, 16, 3, padding=1).double()
    optimizer = Muon(layer.parameters(), lr=0.1)
    before = [parameter.detach().clone() for parameter in layer.parameters()]
    layer(torch.randn(1, 16, 8, 8, dtype=torch.float64)).square().sum().backward()
    optimizer.step()
    for parameter, old in zip(layer.parameters(), before, strict=True):
        step = parameter.detach() - old
        assert step.abs().max() > 1e-3
        assert step.flatten(1).sum(1).abs().max() < 1e-9


def test_it_reaches_what_gradients_hardly_show():
    """Least squares with inputs of very different strength: the weak ones are learnt, too."""
    torch.manual_seed(0)
    inputs = torch.randn(512, 16) * torch.logspace(0, -2, 16)
    truth = torch.randn(16, 16)
    losses = {}
    for kind in (Muon, torch.optim.SGD):
        kernel = nn.Parameter(torch.zeros(16, 16))
        optimizer = kind([kernel], lr=0.05)
        for _ in range(300):
            optimizer.zero_grad()
            (inputs @ (kernel - truth).T).square().mean().backward()
            optimizer.step()
        losses[kind] = float((kernel.detach() - truth).norm() / truth.norm())
    assert losses[Muon] < 0.5 * losses[torch.optim.SGD]


def test_numbers_and_narrow_layers_are_left_to_adam():
    shapes = {(16, 16, 3, 3): True, (32, 4, 3, 3): True, (32, 1, 3, 3): False, (1, 64): False}
    for shape, expected in shapes.items():
        assert is_matrix(nn.Parameter(torch.zeros(shape))) is expected
    assert not is_matrix(nn.Parameter(torch.zeros(())))
    assert not is_matrix(nn.Parameter(torch.zeros(64)))
